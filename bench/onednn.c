/* SPDX-License-Identifier: Apache-2.0 */
#include "onednn.h"

#include <stddef.h>

#ifdef HAVE_ONEDNN
#include <dnnl.h>
#include <stdio.h>
#include <stdlib.h>

enum { SRC, WEIGHTS, BIAS, DST, NMEMORIES };

struct onednn {
	dnnl_engine_t engine;
	dnnl_stream_t stream;
	dnnl_memory_t memory[NMEMORIES];
	dnnl_primitive_desc_t desc;
	dnnl_primitive_t primitive;
	dnnl_exec_arg_t arguments[NMEMORIES];
	int count;
};

const char *onednn_why(void) { return NULL; }

const char *onednn_version(void)
{
	static char text[64];
	const dnnl_version_t *v = dnnl_version();
	snprintf(text, sizeof text, "%d.%d.%d", v->major, v->minor, v->patch);
	return text;
}

/* Rows×cols f32 with these strides over memory of the caller's. The third major version made descriptions of memory opaque. */
static bool wrap(onednn *p, int which, int argument, int64_t rows, int64_t cols, int64_t row, int64_t col, void *data, dnnl_memory_desc_t *desc)
{
	const dnnl_dims_t dims = {rows, cols}, strides = {row, col};
#if DNNL_VERSION_MAJOR >= 3
	bool made = !dnnl_memory_desc_create_with_strides(desc, 2, dims, dnnl_f32, strides) && !dnnl_memory_create(&p->memory[which], *desc, p->engine, data);
#else
	bool made = !dnnl_memory_desc_init_by_strides(desc, 2, dims, dnnl_f32, strides) && !dnnl_memory_create(&p->memory[which], desc, p->engine, data);
#endif
	if (made)
		p->arguments[p->count++] = (dnnl_exec_arg_t){argument, p->memory[which]};
	return made;
}

static bool describe(onednn *p, dnnl_memory_desc_t all[NMEMORIES], bool bias, dnnl_primitive_attr_t attributes)
{
#if DNNL_VERSION_MAJOR >= 3
	return !dnnl_matmul_primitive_desc_create(&p->desc, p->engine, all[SRC], all[WEIGHTS], bias ? all[BIAS] : NULL, all[DST], attributes);
#else
	dnnl_matmul_desc_t product;
	return !dnnl_matmul_desc_init(&product, &all[SRC], &all[WEIGHTS], bias ? &all[BIAS] : NULL, &all[DST]) &&
		!dnnl_primitive_desc_create(&p->desc, &product, attributes, p->engine, NULL);
#endif
}

static bool with_relu(dnnl_primitive_attr_t attributes)
{
	dnnl_post_ops_t after;
	if (dnnl_post_ops_create(&after))
		return false;
#if DNNL_VERSION_MAJOR >= 3
	bool done = !dnnl_post_ops_append_eltwise(after, dnnl_eltwise_relu, 0, 0) && !dnnl_primitive_attr_set_post_ops(attributes, after);
#else
	bool done = !dnnl_post_ops_append_eltwise(after, 1, dnnl_eltwise_relu, 0, 0) && !dnnl_primitive_attr_set_post_ops(attributes, after);
#endif
	dnnl_post_ops_destroy(after);
	return done;
}

/* A column-major D is Dᵀ row-major: Dᵀ (n×m) = Xᵀ (n×k) · Wᵀ (k×m). */
onednn *onednn_create(int64_t m, int64_t n, int64_t k, bool transposed, bool relu, float *w, float *x, float *bias, float *d)
{
	onednn *p = calloc(1, sizeof *p);
	dnnl_memory_desc_t all[NMEMORIES];
	dnnl_primitive_attr_t attributes = NULL;
	bool made = p && !dnnl_engine_create(&p->engine, dnnl_cpu, 0) && !dnnl_stream_create(&p->stream, p->engine, dnnl_stream_default_flags) &&
		wrap(p, SRC, DNNL_ARG_SRC, n, k, k, 1, x, &all[SRC]) && wrap(p, WEIGHTS, DNNL_ARG_WEIGHTS, k, m, transposed ? 1 : m, transposed ? k : 1, w, &all[WEIGHTS]) &&
		(!bias || wrap(p, BIAS, DNNL_ARG_BIAS, 1, m, m, 1, bias, &all[BIAS])) && wrap(p, DST, DNNL_ARG_DST, n, m, m, 1, d, &all[DST]) &&
		!dnnl_primitive_attr_create(&attributes) && (!relu || with_relu(attributes)) && describe(p, all, bias, attributes) &&
		!dnnl_primitive_create(&p->primitive, p->desc);
	if (attributes)
		dnnl_primitive_attr_destroy(attributes);
#if DNNL_VERSION_MAJOR >= 3
	for (int i = 0; i < NMEMORIES && made; i++)
		if (i != BIAS || bias)
			dnnl_memory_desc_destroy(all[i]);
#endif
	if (!made) {
		onednn_destroy(p);
		return NULL;
	}
	return p;
}

void onednn_run(onednn *p)
{
	if (dnnl_primitive_execute(p->primitive, p->stream, p->count, p->arguments) || dnnl_stream_wait(p->stream))
		abort();
}

void onednn_destroy(onednn *p)
{
	if (!p)
		return;
	if (p->primitive)
		dnnl_primitive_destroy(p->primitive);
	if (p->desc)
		dnnl_primitive_desc_destroy(p->desc);
	for (int i = 0; i < NMEMORIES; i++)
		if (p->memory[i])
			dnnl_memory_destroy(p->memory[i]);
	if (p->stream)
		dnnl_stream_destroy(p->stream);
	if (p->engine)
		dnnl_engine_destroy(p->engine);
	free(p);
}

#else

const char *onednn_why(void) { return "configure found no oneDNN (dnnl.h and libdnnl)"; }
const char *onednn_version(void) { return ""; }
void onednn_run(onednn *product) { (void)product; }
void onednn_destroy(onednn *product) { (void)product; }

onednn *onednn_create(int64_t m, int64_t n, int64_t k, bool transposed, bool relu, float *w, float *x, float *bias, float *d)
{
	(void)m, (void)n, (void)k, (void)transposed, (void)relu, (void)w, (void)x, (void)bias, (void)d;
	return NULL;
}

#endif
