/* SPDX-License-Identifier: Apache-2.0
 *
 * What a way costs, in seconds: for putting ways in order, not for telling times. A product takes the longer of its arithmetic
 * and its memory traffic, and a launch; a pass its traffic and a launch. Measured on an H200 (doc/perf): matrix units reach
 * three quarters of their peak, memory three quarters of its, and a kernel after another takes 2.5 us. */
#include "../dtype.h"
#include "../epilog.h"
#include "cuda.h"

static const double launch_s = 2.5e-6, efficiency = 0.75;

/* Operations per clock and multiprocessor (a multiply-add is two), from the vendor's tables of throughput. */
typedef struct rate_row {
	int capability;
	double f16, tf32, f32, f64;
} rate_row;

/* The last row whose capability is not above the device's counts. */
static const rate_row rates[] = {
	{75, 1024, 128, 128, 4}, {80, 2048, 1024, 128, 128}, {86, 1024, 512, 256, 4}, {90, 4096, 2048, 256, 256}, {100, 8192, 4096, 256, 128}, {120, 2048, 1024, 256, 4},
};

static double rate_of(const epg_cuda_context *context, const epg_problem *p)
{
	const rate_row *row = rates;
	for (size_t i = 0; i < sizeof rates / sizeof *rates; i++)
		if (rates[i].capability <= context->capability)
			row = &rates[i];
	double per_clock = epg_type_nbits(p->a.type) == 16 ? row->f16 : p->compute == EPG_COMPUTE_TF32 ? row->tf32 : p->compute == EPG_COMPUTE_F32 ? row->f32 : row->f64;
	int multiprocessors = p->sm_count > 0 && p->sm_count < context->multiprocessors ? p->sm_count : context->multiprocessors;
	return per_clock * multiprocessors * context->clock_hz * efficiency / (epg_type_complex(p->a.type) ? 4 : 1);
}

double epg_cuda_cost_pass(const epg_cuda_context *context, double nbytes, bool sums)
{
	return nbytes / (context->bytes_per_s * efficiency) + (sums ? 2 : 1) * launch_s;
}

/* The vendor's fused gradients take as long as three passes, its f64 epilogs twice the product; forward epilogs some per cent. */
static double epilog_s(const epg_cuda_context *context, const epg_problem *p, int32_t epilog, double product_s)
{
	double elements = (double)p->batch * (double)p->m * (double)p->n, nbytes = elements * (double)epg_type_nbytes(p->d.type, 1);
	if (epilog == EPG_EPILOG_DEFAULT)
		return 0;
	if (epg_epilog_bgrad(epilog) || epilog & EPG_GRAD)
		return 3 * epg_cuda_cost_pass(context, 2 * nbytes, true);
	if (p->compute == EPG_COMPUTE_F64)
		return product_s;
	return 0.04 * product_s + (epilog & EPG_AUX && epg_epilog_act(epilog) == EPG_ACT_GELU ? nbytes / context->bytes_per_s : 0);
}

double epg_cuda_cost_gemm(const epg_cuda_context *context, const epg_problem *p, int32_t vendor_epilog)
{
	double batch = (double)p->batch, m = (double)p->m, n = (double)p->n, k = (double)p->k;
	double nbytes = batch * ((m * k + k * n) * (double)epg_type_nbytes(p->a.type, 1) + m * n * (double)epg_type_nbytes(p->d.type, 1));
	double arithmetic_s = 2 * batch * m * n * k / rate_of(context, p), traffic_s = nbytes / (context->bytes_per_s * efficiency);
	double product_s = (arithmetic_s > traffic_s ? arithmetic_s : traffic_s) + launch_s;
	return product_s + epilog_s(context, p, vendor_epilog, product_s);
}

/* The vendor orders its proposals as if an epilog cost nothing. Seen on an H200 with bf16 (doc/perf): where D is many tiles, relu's
 * epilogs take least with tiles of 128×128, which leave room for a second block whose product hides the epilog; gelu's with
 * tiles of 96×128, behind a short product of 64×128. Elsewhere the vendor's order is right. */
typedef struct tile_row {
	int32_t act, least_waves;
	int64_t most_k;
	int64_t tile; /* cublasLtMatmulTile_t */
} tile_row;

static const tile_row tile_rows[] = {
	{EPG_ACT_RELU, 3, INT64_MAX, CUBLASLT_MATMUL_TILE_128x128},
	{EPG_ACT_GELU, 3, 128, CUBLASLT_MATMUL_TILE_64x128},
	{EPG_ACT_GELU, 3, INT64_MAX, CUBLASLT_MATMUL_TILE_96x128},
};

double epg_cuda_cost_of_algo(const epg_cuda_form *form, const epg_cuda_algo *algo, float first_waves, int32_t i)
{
	double factor = 1 + 0.005 * i;
	for (size_t r = 0; r < sizeof tile_rows / sizeof *tile_rows; r++) {
		const tile_row *row = &tile_rows[r];
		bool applies = epg_epilog_act(form->epilog) == row->act && !(form->epilog & EPG_GRAD) && form->k <= row->most_k;
		if (applies && algo->attribute[1] == row->tile && first_waves >= (float)row->least_waves)
			factor *= 0.9;
	}
	return factor;
}
