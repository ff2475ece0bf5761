/* SPDX-License-Identifier: Apache-2.0
 *
 * The pass for one real type, included by cpu_pass.c once for float and once for double with REAL and NAME defined. A block is
 * at most 64 rows of one column, a mask's word. It goes through a buffer z in the first-level cache, step by step: load the
 * product, add beta·C, add the bias, activate, store, sum. Each step is a loop of 64 that the compiler turns into vector code. */

/* Lane r's own bit, in an integer as wide as the element. */
#define BIT4(r) (BITS)1 << (r), (BITS)1 << ((r) + 1), (BITS)1 << ((r) + 2), (BITS)1 << ((r) + 3)
#define BIT16(r) BIT4(r), BIT4((r) + 4), BIT4((r) + 8), BIT4((r) + 12)
static const BITS NAME(bit)[LANES] = {BIT16(0), BIT16(16)};
#undef BIT4
#undef BIT16

/* What a rectangle's blocks have in common; pointers are of element (0,0) of the batch item. */
typedef struct NAME(shared) {
	const cpu_pass *pass;
	const REAL *c, *bias, *product;
	REAL *d, *aux;
	REAL beta;
	int64_t product_ld;
	bool bias_per_row, bias_per_column, mask, aux_out, aux_in;
	int32_t act;
} NAME(shared);

static const REAL NAME(zeros)[BLOCK];

/* z = product + beta·C + bias in one loop: what is not there is read from zeros, which stay in the first-level cache. */
INLINE void NAME(affine)(const NAME(shared) *s, int64_t i, int64_t j, int n, REAL *restrict z)
{
	const cpu_pass *pass = s->pass;
	const REAL *product = pass->has_product ? s->product + i + j * s->product_ld : NAME(zeros);
	const REAL *bias = s->bias_per_row ? s->bias + i : NAME(zeros), *c = NAME(zeros);
	REAL gathered[BLOCK], beta = pass->add_c ? s->beta : 0, column_bias = s->bias_per_column ? s->bias[j] : 0;
	if (pass->add_c && pass->c_trans) {
		for (int r = 0; r < n; r++)
			gathered[r] = s->c[(i + r) * pass->c_ld + j];
		c = gathered;
	} else if (pass->add_c) {
		c = s->c + i + j * pass->c_ld;
	}
	for (int r = 0; r < n; r++)
		z[r] = product[r] + beta * c[r] + (bias[r] + column_bias);
}

/* Bit r is z[r] ≥ 0. Lanes of the element's width, one bit each, are or-ed together. */
INLINE uint64_t NAME(signs)(const REAL *restrict z, int n)
{
	uint64_t word = 0;
	for (int from = 0; from < n; from += LANES) {
		int count = n - from < LANES ? n - from : LANES;
		BITS lanes = 0;
		if (count == LANES)
			for (int r = 0; r < LANES; r++)
				lanes |= z[from + r] >= 0 ? NAME(bit)[r] : 0;
		else
			for (int r = 0; r < count; r++)
				lanes |= z[from + r] >= 0 ? NAME(bit)[r] : 0;
		word |= (uint64_t)lanes << from;
	}
	return word;
}

INLINE void NAME(select)(REAL *restrict z, int n, uint64_t word)
{
	for (int from = 0; from < n; from += LANES) {
		int count = n - from < LANES ? n - from : LANES;
		BITS lanes = (BITS)(word >> from);
		if (count == LANES)
			for (int r = 0; r < LANES; r++)
				z[from + r] = lanes & NAME(bit)[r] ? z[from + r] : 0;
		else
			for (int r = 0; r < count; r++)
				z[from + r] = lanes & NAME(bit)[r] ? z[from + r] : 0;
	}
}

INLINE void NAME(activate)(const NAME(shared) *s, int64_t i, int64_t j, int n, REAL *restrict z, uint64_t *word)
{
	int64_t ld = s->pass->aux_ld, step = s->pass->aux_trans ? ld : 1;
	REAL *aux = s->mask ? NULL : s->aux + (s->pass->aux_trans ? i * ld + j : i + j * ld);
	if (s->aux_out && s->mask)
		*word = NAME(signs)(z, n);
	else if (s->aux_out && step == 1)
		for (int r = 0; r < n; r++)
			aux[r] = z[r];
	else if (s->aux_out)
		for (int r = 0; r < n; r++)
			aux[r * step] = z[r];
	if (s->aux_in && s->mask)
		NAME(select)(z, n, *word);
	else if (s->aux_in && step == 1)
		for (int r = 0; r < n; r++)
			z[r] *= MATH(dgelu)(aux[r]);
	else if (s->aux_in)
		for (int r = 0; r < n; r++)
			z[r] *= MATH(dgelu)(aux[r * step]);
	else if (s->act == EPG_ACT_RELU)
		for (int r = 0; r < n; r++)
			z[r] = MATH(relu)(z[r]);
	else if (s->act == EPG_ACT_GELU)
		for (int r = 0; r < n; r++)
			z[r] = MATH(gelu)(z[r]);
}

/* Sum of a block: 16 lanes of 4, each lane rounded at most 3 times, then double. */
INLINE double NAME(block_sum)(const REAL *restrict z, int n)
{
	REAL lanes[16] = {0};
	double sum = 0;
	int r = 0;
	for (; r + 16 <= n; r += 16)
		for (int l = 0; l < 16; l++)
			lanes[l] += z[r + l];
	for (int l = 0; l < n - r; l++)
		lanes[l] += z[r + l];
	for (int l = 0; l < 16; l++)
		sum += (double)lanes[l];
	return sum;
}

INLINE void NAME(body)(const NAME(shared) *s, int64_t i, int64_t j, int n, uint64_t *word, REAL *restrict row_sums, double *column_sum)
{
	REAL z[BLOCK] __attribute__((aligned(64)));
	REAL *restrict d = s->d + i + j * s->pass->d_ld;
	NAME(affine)(s, i, j, n, z);
	NAME(activate)(s, i, j, n, z, word);
	if (s->pass->stream && n == BLOCK && ((uintptr_t)d & 63) == 0)
		stream_block(d, z, BLOCK * sizeof *z);
	else
		for (int r = 0; r < n; r++)
			d[r] = z[r];
	if (row_sums)
		for (int r = 0; r < n; r++)
			row_sums[r] += z[r];
	if (column_sum)
		*column_sum += NAME(block_sum)(z, n);
}

/* The constant trip count is what makes the loops of a whole block vector code without tails. */
static void NAME(block)(const NAME(shared) *s, int64_t i, int64_t j, int n, uint64_t *word, REAL *row_sums, double *column_sum)
{
	if (n == BLOCK)
		NAME(body)(s, i, j, BLOCK, word, row_sums, column_sum);
	else
		NAME(body)(s, i, j, n, word, row_sums, column_sum);
}

static NAME(shared) NAME(share)(const cpu_pass *pass, const cpu_pass_data *data, int64_t i0, int64_t j0)
{
	const REAL *product = data->product;
	bool bias = pass->epilog & EPG_BIAS;
	return (NAME(shared)){
		.pass = pass, .c = data->c, .bias = data->bias, .d = data->d, .aux = data->aux,
		.product = product ? product - i0 - j0 * data->product_ld : data->d, .product_ld = product ? data->product_ld : pass->d_ld, .beta = (REAL)data->beta[0],
		.bias_per_row = bias && pass->axis == EPG_PER_ROW, .bias_per_column = bias && pass->axis == EPG_PER_COLUMN,
		.act = epg_epilog_act(pass->epilog), .mask = pass->epilog & EPG_AUX && epg_epilog_act(pass->epilog) == EPG_ACT_RELU,
		.aux_out = epg_epilog_aux_out(pass->epilog), .aux_in = epg_epilog_aux_in(pass->epilog),
	};
}

/* Rows i0 ≤ i < i1 (with row sums at most PANEL) of columns j0 ≤ j < j1. Row sums run over at most RUN columns in REAL, then in double. */
static void NAME(panel)(const NAME(shared) *s, const cpu_pass_data *data, int64_t i0, int64_t i1, int64_t j0, int64_t j1)
{
	bool per_row = data->sums && s->pass->axis == EPG_PER_ROW, turned = s->mask && s->pass->aux_trans;
	REAL run[PANEL] = {0};
	uint64_t words[8] = {0};
	for (int64_t j = j0; j < j1; j++) {
		if (turned && s->aux_in && (j - j0) % 8 == 0)
			load_turned(data->aux, s->pass->aux_ld, i0, i1, j, j1, words);
		for (int64_t i = i0; i < i1; i += BLOCK) {
			int n = i1 - i < BLOCK ? (int)(i1 - i) : BLOCK;
			uint64_t *word = &words[(j - j0) % 8];
			if (s->mask && s->aux_in && !turned)
				*word = load_word(data->aux, s->pass->aux_ld * j + i, n);
			NAME(block)(s, i, j, n, word, per_row ? run + (i - i0) : NULL, data->sums && !per_row ? &data->sums[j] : NULL);
			if (s->mask && s->aux_out && !turned)
				store_word(data->aux, s->pass->aux_ld * j + i, n, *word);
		}
		if (turned && s->aux_out && ((j - j0) % 8 == 7 || j + 1 == j1))
			store_turned(data->aux, s->pass->aux_ld, i0, i1, j - (j - j0) % 8, j1, words);
		if (per_row && ((j - j0) % RUN == RUN - 1 || j + 1 == j1))
			for (int64_t i = i0; i < i1; i++) {
				data->sums[i] += (double)run[i - i0];
				run[i - i0] = 0;
			}
	}
}

static void NAME(run)(const cpu_pass *pass, const cpu_pass_data *data, int64_t i0, int64_t i1, int64_t j0, int64_t j1)
{
	NAME(shared) s = NAME(share)(pass, data, i0, j0);
	/* A block of 64×64 of a matrix that is stored the other way round stays in the first-level cache; whole columns are what the
	 * memory likes best. */
	bool turned = (pass->add_c && pass->c_trans) || (pass->epilog & EPG_AUX && pass->aux_trans), per_row = data->sums && pass->axis == EPG_PER_ROW;
	int64_t panel = turned ? BLOCK : per_row ? PANEL : i1 > i0 ? i1 - i0 : 1;
	if (!data->continues)
		clear_sums(data->sums, pass->axis, i0, i1, j0, j1);
	for (int64_t i = i0; i < i1; i += panel)
		NAME(panel)(&s, data, i, i + panel < i1 ? i + panel : i1, j0, j1);
	if (pass->stream)
		stream_end();
}

static void NAME(sum)(const REAL *x, int64_t ld, int32_t axis, int64_t i0, int64_t i1, int64_t j0, int64_t j1, double *sums)
{
	clear_sums(sums, axis, i0, i1, j0, j1);
	for (int64_t p0 = i0; p0 < i1; p0 += PANEL) {
		int64_t p1 = p0 + PANEL < i1 ? p0 + PANEL : i1;
		REAL run[PANEL] = {0};
		for (int64_t j = j0; j < j1; j++) {
			const REAL *column = x + j * ld;
			if (axis == EPG_PER_COLUMN)
				for (int64_t i = p0; i < p1; i += BLOCK)
					sums[j] += NAME(block_sum)(column + i, p1 - i < BLOCK ? (int)(p1 - i) : BLOCK);
			else
				for (int64_t i = p0; i < p1; i++)
					run[i - p0] += column[i];
			if (axis == EPG_PER_ROW && ((j - j0) % RUN == RUN - 1 || j + 1 == j1))
				for (int64_t i = p0; i < p1; i++) {
					sums[i] += (double)run[i - p0];
					run[i - p0] = 0;
				}
		}
	}
}
