/* SPDX-License-Identifier: Apache-2.0
 *
 * The passes for one real type, included by cpu_pass.c once for float and once for double with REAL and NAME defined: kernels
 * over tiles, their table, the buffers for what a kernel does not see directly, and the complex type of two REALs. */

/* Lane r's own bit, in an integer as wide as the element. */
#define BIT4(r) (BITS)1 << (r), (BITS)1 << ((r) + 1), (BITS)1 << ((r) + 2), (BITS)1 << ((r) + 3)
#define BIT16(r) BIT4(r), BIT4((r) + 4), BIT4((r) + 8), BIT4((r) + 12)
static const BITS NAME(bit)[LANES] = {BIT16(0), BIT16(16)};
#undef BIT4
#undef BIT16

/* What a kernel works on. Pointers are of the tile's first element, row or column. */
typedef struct NAME(tile) {
	int64_t rows, cols;
	const REAL *source, *bias; /* bias NULL: 0, only without ROW_BIAS */
	REAL scale, *d;
	void *aux;
	double *sums;
	int64_t source_ld, d_ld, aux_ld; /* a mask's in bits, of whole bytes */
} NAME(tile);

typedef void NAME(kernel)(const NAME(tile) *);

/* ---- Kernels ---- */

/* n rows of one column; word is the mask's, of n ≤ LANES rows, in or out. */
INLINE BITS NAME(rows)(int what, int64_t n, const REAL *source, REAL scale, const REAL *bias, REAL value, REAL *d, REAL *aux, REAL *run, BITS word)
{
	BITS out = 0;
	INDEPENDENT
	for (int64_t r = 0; r < n; r++) {
		REAL z = scale * source[r] + (what & ROW_BIAS ? bias[r] : value);
		if ((what & RELU) && (what & AUX_OUT))
			out |= z >= 0 ? NAME(bit)[r] : 0;
		if ((what & GELU) && (what & AUX_OUT))
			aux[r] = z;
		if (what & AUX_IN)
			z = what & RELU ? (word & NAME(bit)[r] ? z : 0) : z * MATH(dgelu)(aux[r]);
		else if (what & RELU)
			z = MATH(relu)(z);
		else if (what & GELU)
			z = MATH(gelu)(z);
		d[r] = z;
		if (what & ROW_SUMS)
			run[r] += z;
	}
	return out;
}

INLINE void NAME(masked)(int what, int n, const REAL *source, REAL scale, const REAL *bias, REAL value, REAL *d, REAL *run, unsigned char *mask)
{
	BITS word = what & AUX_IN ? load_bits(mask, n) : 0;
	word = NAME(rows)(what, n, source, scale, bias, value, d, NULL, run, word);
	if (what & AUX_OUT)
		store_bits(mask, n, (uint32_t)word);
}

/* One column. With a mask, LANES rows at a time: the constant makes vector code without tails. */
INLINE void NAME(column)(int what, const NAME(tile) *t, int64_t j, REAL *run)
{
	const REAL *source = t->source + j * t->source_ld;
	REAL *d = t->d + j * t->d_ld, *aux = (REAL *)t->aux + (what & GELU ? j * t->aux_ld : 0);
	REAL value = !(what & ROW_BIAS) && t->bias ? t->bias[j] : 0;
	if (!(what & RELU) || !(what & (AUX_IN | AUX_OUT))) {
		NAME(rows)(what, t->rows, source, t->scale, t->bias, value, d, aux, run, 0);
		return;
	}
	unsigned char *mask = (unsigned char *)t->aux + j * (t->aux_ld / 8);
	int64_t i = 0;
	for (; i + LANES <= t->rows; i += LANES)
		NAME(masked)(what, LANES, source + i, t->scale, what & ROW_BIAS ? t->bias + i : NULL, value, d + i, run + (what & ROW_SUMS ? i : 0), mask + i / 8);
	if (i < t->rows)
		NAME(masked)(what, (int)(t->rows - i), source + i, t->scale, what & ROW_BIAS ? t->bias + i : NULL, value, d + i, run + (what & ROW_SUMS ? i : 0), mask + i / 8);
}

/* Sum of n contiguous elements: 4 of a lane in REAL, the lanes in double. */
static double NAME(line_sum)(const REAL *x, int64_t n)
{
	double sum[8] = {0};
	for (; n >= 64; n -= 64, x += 64) {
		REAL lane[16];
		for (int l = 0; l < 16; l++)
			lane[l] = (x[l] + x[l + 16]) + (x[l + 32] + x[l + 48]);
		for (int l = 0; l < 8; l++)
			sum[l] += (double)lane[l] + (double)lane[l + 8];
	}
	for (int l = 0; l < n; l++)
		sum[l % 8] += (double)x[l];
	return ((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7]));
}

static void NAME(flush)(double *sums, REAL *run, int64_t rows)
{
	for (int64_t i = 0; i < rows; i++) {
		sums[i] += (double)run[i];
		run[i] = 0;
	}
}

/* A tile; with ROW_SUMS of at most PANEL rows. */
INLINE void NAME(sweep)(int what, const NAME(tile) *t)
{
	REAL run[PANEL];
	if (what & ROW_SUMS)
		memset(run, 0, (size_t)t->rows * sizeof *run);
	for (int64_t j = 0; j < t->cols; j++) {
		NAME(column)(what, t, j, run);
		if (what & COLUMN_SUMS)
			t->sums[j] += NAME(line_sum)(t->d + j * t->d_ld, t->rows);
		if ((what & ROW_SUMS) && (j % RUN == RUN - 1 || j + 1 == t->cols))
			NAME(flush)(t->sums, run, t->rows);
	}
}

#define KERNEL(name, what) \
	static void NAME(name)(const NAME(tile) *t) { NAME(sweep)(what, t); }
#define FORWARD(name, what) KERNEL(name, what) KERNEL(name##_row, what | ROW_BIAS)
#define BACKWARD(name, what) KERNEL(name, what) KERNEL(name##_rows, what | ROW_SUMS) KERNEL(name##_columns, what | COLUMN_SUMS)
FORWARD(plain, 0)
FORWARD(relu, RELU)
FORWARD(relu_aux, RELU | AUX_OUT)
BACKWARD(drelu, RELU | AUX_IN)
FORWARD(gelu, GELU)
FORWARD(gelu_aux, GELU | AUX_OUT)
BACKWARD(dgelu, GELU | AUX_IN)
#undef KERNEL
#undef FORWARD
#undef BACKWARD

/* By activation; no aux, aux written, aux read; and: bias per column or none, bias per row; or: no sums, per row, per column. */
static NAME(kernel) *NAME(pick)(const cpu_pass *pass, bool sums)
{
	static NAME(kernel) *const kernels[3][3][3] = {
		[EPG_ACT_NONE] = {{NAME(plain), NAME(plain_row)}},
		[EPG_ACT_RELU] = {{NAME(relu), NAME(relu_row)}, {NAME(relu_aux), NAME(relu_aux_row)}, {NAME(drelu), NAME(drelu_rows), NAME(drelu_columns)}},
		[EPG_ACT_GELU] = {{NAME(gelu), NAME(gelu_row)}, {NAME(gelu_aux), NAME(gelu_aux_row)}, {NAME(dgelu), NAME(dgelu_rows), NAME(dgelu_columns)}},
	};
	bool per_row = pass->axis == EPG_PER_ROW, out = epg_epilog_aux_out(pass->epilog), in = epg_epilog_aux_in(pass->epilog);
	int variant = in ? (!sums ? 0 : per_row ? 1 : 2) : (pass->epilog & EPG_BIAS) && per_row;
	return kernels[epg_epilog_act(pass->epilog)][in ? 2 : out][variant];
}

/* ---- Around the kernels ---- */

/* A pass over one rectangle; pointers are of element (0,0) of the batch item, product's too. */
typedef struct NAME(job) {
	const cpu_pass *pass;
	NAME(kernel) *kernel;
	const REAL *product, *c, *bias;
	REAL *d, beta;
	void *aux;
	double *sums;
	int64_t product_ld;
	bool mask, bias_per_row, sums_per_row, aux_turned;
} NAME(job);

static NAME(job) NAME(make_job)(const cpu_pass *pass, const cpu_pass_data *data, int64_t i0, int64_t j0)
{
	const REAL *product = data->product;
	bool aux = pass->epilog & EPG_AUX, bias = pass->epilog & EPG_BIAS;
	return (NAME(job)){
		.pass = pass, .kernel = NAME(pick)(pass, data->sums), .c = data->c, .bias = bias ? data->bias : NULL, .d = data->d, .aux = data->aux,
		.product = product ? product - i0 - j0 * data->product_ld : data->d, .product_ld = product ? data->product_ld : pass->d_ld,
		.beta = (REAL)data->beta[0], .sums = data->sums, .bias_per_row = bias && pass->axis == EPG_PER_ROW,
		.sums_per_row = data->sums && pass->axis == EPG_PER_ROW, .aux_turned = aux && pass->aux_trans, .mask = aux && epg_epilog_act(pass->epilog) == EPG_ACT_RELU,
	};
}

/* The tile at (i,j) with everything where it lies. */
static NAME(tile) NAME(make_tile)(const NAME(job) *job, int64_t i, int64_t j, int64_t rows, int64_t cols)
{
	const cpu_pass *pass = job->pass;
	int64_t aux = i + j * pass->aux_ld;
	NAME(tile) t = {
		.rows = rows, .cols = cols, .source = job->product + i + j * job->product_ld, .source_ld = job->product_ld, .scale = 1,
		.bias = job->bias ? job->bias + (job->bias_per_row ? i : j) : NULL, .d = job->d + i + j * pass->d_ld, .d_ld = pass->d_ld, .aux_ld = pass->aux_ld,
		.aux = job->mask ? (void *)((char *)job->aux + aux / 8) : (void *)((REAL *)job->aux + (job->aux ? aux : 0)),
		.sums = job->sums ? job->sums + (job->sums_per_row ? i : j) : NULL,
	};
	if (pass->add_c && !pass->has_product) {
		t.source = job->c + i + j * pass->c_ld;
		t.source_ld = pass->c_ld;
		t.scale = job->beta;
	}
	return t;
}

/* Four of the elements, at any address of theirs. */
typedef REAL NAME(four) __attribute__((vector_size(4 * sizeof(REAL)), aligned(sizeof(REAL)), may_alias));
typedef BITS NAME(four_bits) __attribute__((vector_size(4 * sizeof(BITS))));

/* to[r + c·to_ld] = from[r·from_ld + c] for 4×4 elements. */
INLINE void NAME(turn_four)(REAL *to, int64_t to_ld, const REAL *from, int64_t from_ld)
{
	NAME(four) a = *(const NAME(four) *)from, b = *(const NAME(four) *)(from + from_ld);
	NAME(four) c = *(const NAME(four) *)(from + 2 * from_ld), d = *(const NAME(four) *)(from + 3 * from_ld);
	NAME(four) ab = SHUFFLE(a, b, 0, 4, 1, 5), cd = SHUFFLE(c, d, 0, 4, 1, 5), ef = SHUFFLE(a, b, 2, 6, 3, 7), gh = SHUFFLE(c, d, 2, 6, 3, 7);
	*(NAME(four) *)to = SHUFFLE(ab, cd, 0, 1, 4, 5);
	*(NAME(four) *)(to + to_ld) = SHUFFLE(ab, cd, 2, 3, 6, 7);
	*(NAME(four) *)(to + 2 * to_ld) = SHUFFLE(ef, gh, 0, 1, 4, 5);
	*(NAME(four) *)(to + 3 * to_ld) = SHUFFLE(ef, gh, 2, 3, 6, 7);
}

/* The same for rows×cols of them. */
static void NAME(turn)(REAL *to, int64_t to_ld, const REAL *from, int64_t from_ld, int64_t rows, int64_t cols)
{
	for (int64_t r = 0; r < rows; r += 4)
		for (int64_t c = 0; c < cols; c += 4) {
			if (4 * sizeof(REAL) <= VECTOR_NBYTES && r + 4 <= rows && c + 4 <= cols) {
				NAME(turn_four)(to + r + c * to_ld, to_ld, from + r * from_ld + c, from_ld);
				continue;
			}
			for (int64_t x = r; x < rows && x < r + 4; x++)
				for (int64_t y = c; y < cols && y < c + 4; y++)
					to[x + y * to_ld] = from[x * from_ld + y];
		}
}

/* The sum of product and beta·C, or a transposed C, or zeros, where there is not simply one source. */
static void NAME(stage_source)(const NAME(job) *job, NAME(tile) *t, int64_t i, int64_t j, REAL *restrict buffer)
{
	const cpu_pass *pass = job->pass;
	if (!pass->add_c && pass->has_product)
		return;
	if (!pass->add_c)
		memset(buffer, 0, (size_t)(t->rows * t->cols) * sizeof *buffer);
	else if (pass->c_trans)
		NAME(turn)(buffer, t->rows, job->c + i * pass->c_ld + j, pass->c_ld, t->rows, t->cols);
	else if (!pass->has_product)
		return;
	for (int64_t c = 0; pass->has_product && c < t->cols; c++) {
		const REAL *product = t->source + c * t->source_ld;
		const REAL *summand = pass->c_trans ? buffer + c * t->rows : job->c + i + (j + c) * pass->c_ld;
		INDEPENDENT
		for (int64_t r = 0; r < t->rows; r++)
			buffer[r + c * t->rows] = product[r] + job->beta * summand[r];
	}
	t->source = buffer;
	t->source_ld = t->rows;
}

/* A tile of at most STAGE elements by way of buffers. */
static void NAME(staged)(const NAME(job) *job, int64_t i, int64_t j, int64_t rows, int64_t cols)
{
	REAL source[STAGE], d[STAGE], aux[STAGE];
	unsigned char mask[TURN_COLS + 7][TURN_ROWS / 8];
	const cpu_pass *pass = job->pass;
	NAME(tile) t = NAME(make_tile)(job, i, j, rows, cols);
	int64_t aux_at = i * pass->aux_ld + j;
	NAME(stage_source)(job, &t, i, j, source);
	if (job->aux_turned) {
		t.aux = job->mask ? (void *)mask : (void *)aux;
		t.aux_ld = job->mask ? TURN_ROWS : rows;
		if (job->mask && epg_epilog_aux_in(pass->epilog))
			load_turned(job->aux, aux_at, pass->aux_ld, (int)rows, (int)cols, mask);
		else if (epg_epilog_aux_in(pass->epilog))
			NAME(turn)(aux, rows, (const REAL *)job->aux + aux_at, pass->aux_ld, rows, cols);
	}
	if (pass->stream) {
		t.d = d;
		t.d_ld = rows;
	}
	job->kernel(&t);
	if (job->aux_turned && epg_epilog_aux_out(pass->epilog)) {
		if (job->mask)
			store_turned(job->aux, aux_at, pass->aux_ld, (int)rows, (int)cols, mask);
		else
			NAME(turn)((REAL *)job->aux + aux_at, pass->aux_ld, aux, rows, cols, rows);
	}
	for (int64_t c = 0; pass->stream && c < cols; c++)
		stream_copy(job->d + i + (j + c) * pass->d_ld, d + c * rows, (size_t)rows * sizeof *d);
}

static void NAME(run)(const cpu_pass *pass, const cpu_pass_data *data, int64_t i0, int64_t i1, int64_t j0, int64_t j1)
{
	NAME(job) job = NAME(make_job)(pass, data, i0, j0);
	bool c_turned = pass->add_c && pass->c_trans, one_source = pass->has_product != pass->add_c;
	bool staged = c_turned || !one_source || job.aux_turned || pass->stream;
	/* Whole columns are what the memory likes best; what is turned, and running sums, stay in the first-level cache. */
	int64_t rows = i1 - i0, cols = j1 - j0;
	if (c_turned || job.aux_turned)
		rows = TURN_ROWS, cols = TURN_COLS;
	else if (staged && job.sums_per_row)
		rows = SUMS_ROWS, cols = SUMS_COLS;
	else if (staged)
		rows = STAGE, cols = 1;
	else if (job.sums)
		rows = PANEL;
	if (!data->continues)
		clear_sums(data->sums, pass->axis, i0, i1, j0, j1);
	for (int64_t i = i0; i < i1; i += rows)
		for (int64_t j = j0; j < j1; j += cols) {
			int64_t r = i1 - i < rows ? i1 - i : rows, c = j1 - j < cols ? j1 - j : cols;
			NAME(tile) t = NAME(make_tile)(&job, i, j, r, c);
			if (staged)
				NAME(staged)(&job, i, j, r, c);
			else
				job.kernel(&t);
		}
	if (pass->stream)
		stream_end();
}

/* ---- Sums of a matrix that is no D ---- */

static void NAME(sum)(const REAL *x, int64_t ld, int32_t axis, int64_t i0, int64_t i1, int64_t j0, int64_t j1, double *sums)
{
	clear_sums(sums, axis, i0, i1, j0, j1);
	if (axis == EPG_PER_COLUMN) {
		for (int64_t j = j0; j < j1; j++)
			sums[j] = NAME(line_sum)(x + i0 + j * ld, i1 - i0);
		return;
	}
	for (int64_t i = i0; i < i1; i += PANEL) {
		REAL run[PANEL] = {0};
		int64_t rows = i1 - i < PANEL ? i1 - i : PANEL;
		for (int64_t j = j0; j < j1; j++) {
			for (int64_t r = 0; r < rows; r++)
				run[r] += x[i + r + j * ld];
			if ((j - j0) % RUN == RUN - 1 || j + 1 == j1)
				NAME(flush)(sums + i, run, rows);
		}
	}
}

/* ---- The complex type: z = product + beta·C + bias ---- */

/* n elements; those of from, C and bias lie some REALs apart. z is a buffer. */
INLINE void NAME(complex_rows)(int64_t n, const REAL *from, int64_t from_step, const REAL *c, int64_t c_step, const REAL *bias, int64_t bias_step,
	REAL re, REAL im, REAL *restrict z, REAL *d)
{
	if (c) {
		for (int64_t r = 0; r < n; r++) {
			REAL x = c[r * c_step], y = c[r * c_step + 1];
			z[2 * r] = from[r * from_step] + (re * x - im * y);
			z[2 * r + 1] = from[r * from_step + 1] + (re * y + im * x);
		}
		from = z;
		from_step = 2;
	}
	INDEPENDENT
	for (int64_t r = 0; r < n; r++) {
		d[2 * r] = from[r * from_step] + bias[r * bias_step];
		d[2 * r + 1] = from[r * from_step + 1] + bias[r * bias_step + 1];
	}
}

static void NAME(complex)(const cpu_pass *pass, const cpu_pass_data *data, int64_t i0, int64_t i1, int64_t j0, int64_t j1)
{
	static const REAL zero[2];
	const REAL *c = pass->add_c ? data->c : NULL, *bias = pass->epilog & EPG_BIAS ? data->bias : NULL;
	const REAL *product = data->product ? (const REAL *)data->product - 2 * (i0 + j0 * data->product_ld) : data->d;
	int64_t product_ld = data->product ? data->product_ld : pass->d_ld;
	REAL z[STAGE], re = (REAL)data->beta[0], im = (REAL)data->beta[1];
	bool per_row = pass->axis == EPG_PER_ROW;
	for (int64_t i = i0; i < i1; i += TURN_ROWS)
		for (int64_t j = j0; j < j1; j++) {
			int64_t n = i1 - i < TURN_ROWS ? i1 - i : TURN_ROWS, from_step = pass->has_product ? 2 : 0, bias_step = bias && per_row ? 2 : 0;
			const REAL *from = pass->has_product ? product + 2 * (i + j * product_ld) : zero;
			const REAL *c_at = c ? c + 2 * (pass->c_trans ? i * pass->c_ld + j : i + j * pass->c_ld) : NULL;
			const REAL *bias_at = bias ? bias + 2 * (per_row ? i : j) : zero;
			REAL *d = (REAL *)data->d + 2 * (i + j * pass->d_ld);
			if (from_step && !pass->c_trans && bias_step)
				NAME(complex_rows)(n, from, 2, c_at, 2, bias_at, 2, re, im, z, d);
			else if (from_step && !pass->c_trans)
				NAME(complex_rows)(n, from, 2, c_at, 2, bias_at, 0, re, im, z, d);
			else
				NAME(complex_rows)(n, from, from_step, c_at, pass->c_trans ? 2 * pass->c_ld : 2, bias_at, bias_step, re, im, z, d);
		}
}
