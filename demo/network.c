/* SPDX-License-Identifier: Apache-2.0
 *
 * The plans, and what runs them. The only arithmetic done here by hand is softmax with cross-entropy, on the few numbers
 * of Z; they come to the host and dZ goes back, so the same code drives a GPU. */
#include "network.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

void must(epg_status status)
{
	if (status == EPG_SUCCESS)
		return;
	fflush(stdout);
	fprintf(stderr, "\nepigemm: %s: %s\n", epg_status_string(status), epg_last_error());
	exit(1);
}

static void *host_memory(size_t count, size_t nbytes)
{
	void *memory = calloc(count, nbytes);
	if (memory)
		return memory;
	fprintf(stderr, "\nNo memory for %zu elements of %zu bytes.\n", count, nbytes);
	exit(1);
}

static size_t element(const network *net)
{
	return (size_t)epg_type_nbits(net->type) / 8;
}

/* ---- Plans ---- */

/* What a product differs in from D = A·B, column-major. */
typedef struct product {
	int64_t m, n, k;
	int32_t op_a, op_b, epilog, flags;
	double beta;
} product;

static void describe(const network *net, const product *p, epg_matmul_desc *desc)
{
	must(epg_matmul_desc_init(desc, sizeof *desc, p->m, p->n, p->k, net->type, EPG_COL));
	desc->a.op = p->op_a;
	desc->b.op = p->op_b;
	desc->epilog = p->epilog;
	desc->beta[0] = p->beta;
	desc->flags = EPG_DETERMINISTIC | p->flags; /* the same seed gives the same network, whatever the threads */
}

static epg_plan *make_plan(const network *net, product p)
{
	epg_matmul_desc desc;
	epg_plan *plan = NULL;
	describe(net, &p, &desc);
	must(epg_plan_create(net->context, &desc, NULL, &plan));
	return plan;
}

static void make_gradient_plans(const network *net, network_plans *plans, int mode)
{
	const int64_t n = plans->n;
	const double beta = mode == GRADIENT_ADD;
	const int32_t add = mode == GRADIENT_ADD ? EPG_BGRAD_ACCUMULATE : 0;
	plans->output_gradient[mode] = make_plan(net, (product){.m = net->outputs, .n = net->hidden, .k = n, .op_b = EPG_OP_T,
		.epilog = EPG_EPILOG_BGRADA, .beta = beta, .flags = add});
	plans->hidden_gradient[mode] = make_plan(net, (product){.m = net->hidden, .n = n, .k = net->outputs, .op_a = EPG_OP_T,
		.epilog = EPG_EPILOG_DRELU_BGRAD, .flags = add});
	plans->input_gradient[mode] = make_plan(net, (product){.m = net->hidden, .n = net->inputs, .k = n, .op_b = EPG_OP_T,
		.beta = beta});
}

/* The plans for a batch size: a training set rarely divides by it, so the last batch of an epoch has its own. */
static const network_plans *plans_for(network *net, int64_t n)
{
	network_plans *plans = net->plans;
	while (plans && plans->n != n)
		plans = plans->next;
	if (plans)
		return plans;
	plans = host_memory(1, sizeof *plans);
	plans->n = n;
	product hidden = {.m = net->hidden, .n = n, .k = net->inputs, .epilog = EPG_EPILOG_RELU_AUX_BIAS};
	plans->hidden = make_plan(net, hidden);
	hidden.epilog = EPG_EPILOG_RELU_BIAS;
	plans->hidden_only = make_plan(net, hidden);
	plans->output = make_plan(net, (product){.m = net->outputs, .n = n, .k = net->hidden, .epilog = EPG_EPILOG_BIAS});
	make_gradient_plans(net, plans, GRADIENT_WRITE);
	make_gradient_plans(net, plans, GRADIENT_ADD);
	plans->next = net->plans;
	net->plans = plans;
	return plans;
}

static void destroy_plans(network_plans *plans)
{
	epg_plan_destroy(plans->hidden);
	epg_plan_destroy(plans->hidden_only);
	epg_plan_destroy(plans->output);
	for (int mode = 0; mode < GRADIENT_MODES; mode++) {
		epg_plan_destroy(plans->output_gradient[mode]);
		epg_plan_destroy(plans->hidden_gradient[mode]);
		epg_plan_destroy(plans->input_gradient[mode]);
	}
	free(plans);
}

/* ---- Memory ---- */

static void *backend_memory(network *net, int64_t elements)
{
	void *memory = NULL;
	must(epg_malloc(net->context, (size_t)elements * element(net), &memory));
	return memory;
}

/* Parts begin at multiples of 256 bytes, as separate allocations would. */
static void lay_out_block(network *net)
{
	const int64_t line = 256 / (int64_t)element(net);
	net->length[PART_W1] = net->hidden * net->inputs;
	net->length[PART_B1] = net->hidden;
	net->length[PART_W2] = net->outputs * net->hidden;
	net->length[PART_B2] = net->outputs;
	for (int part = 0; part < PARTS; part++) {
		net->start[part] = net->block;
		net->block += (net->length[part] + line - 1) / line * line;
	}
}

static void *part(const network *net, void *block, int which)
{
	return (char *)block + (size_t)net->start[which] * element(net);
}

static void allocate(network *net)
{
	epg_matmul_desc desc;
	epg_layout mask;
	product hidden = {.m = net->hidden, .n = net->max_n, .k = net->inputs, .epilog = EPG_EPILOG_RELU_AUX_BIAS};
	describe(net, &hidden, &desc);
	must(epg_matmul_desc_layout(&desc, EPG_OPERAND_AUX, &mask));
	net->mask_nbytes = (size_t)mask.nbytes;
	must(epg_malloc(net->context, net->mask_nbytes, &net->mask));
	net->parameters = backend_memory(net, net->block);
	net->gradient = backend_memory(net, net->block);
	net->x = backend_memory(net, net->inputs * net->max_n);
	net->h = backend_memory(net, net->hidden * net->max_n);
	net->dh = backend_memory(net, net->hidden * net->max_n);
	net->z = backend_memory(net, net->outputs * net->max_n);
	net->dz = backend_memory(net, net->outputs * net->max_n);
	net->one = backend_memory(net, 1);
	net->host = host_memory((size_t)(net->outputs * net->max_n), element(net));
}

static double get_element(const network *net, const void *from, int64_t i)
{
	return net->type == EPG_F32 ? (double)((const float *)from)[i] : ((const double *)from)[i];
}

static void set_element(const network *net, void *to, int64_t i, double value)
{
	if (net->type == EPG_F32)
		((float *)to)[i] = (float)value;
	else
		((double *)to)[i] = value;
}

void network_get(network *net, const void *block, int64_t start, int64_t n, double *to)
{
	void *host = host_memory((size_t)n, element(net));
	must(epg_download(net->context, host, (const char *)block + (size_t)start * element(net), (size_t)n * element(net), NULL));
	must(epg_synchronize(net->context, NULL));
	for (int64_t i = 0; i < n; i++)
		to[i] = get_element(net, host, i);
	free(host);
}

void network_set(network *net, void *block, int64_t start, int64_t n, const double *from)
{
	void *host = host_memory((size_t)n, element(net));
	for (int64_t i = 0; i < n; i++)
		set_element(net, host, i, from[i]);
	must(epg_upload(net->context, (char *)block + (size_t)start * element(net), host, (size_t)n * element(net), NULL));
	free(host);
}

/* ---- Weights to begin with ---- */

/* splitmix64 (Steele, Lea, Flood 2014), as a number in [-1, 1). */
static double uniform(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return (double)((z ^ z >> 31) >> 11) * 0x1p-52 - 1;
}

/* He et al. 2015: a variance of 2 / inputs keeps the size of activations through ReLU; ±√(6 / inputs) has it. */
static void draw_weights(network *net, uint64_t seed)
{
	static const int weights[] = {PART_W1, PART_W2};
	const int64_t fan_in[] = {net->inputs, net->hidden};
	double *values = host_memory((size_t)net->block, sizeof *values);
	for (int layer = 0; layer < 2; layer++)
		for (int64_t i = 0; i < net->length[weights[layer]]; i++)
			values[net->start[weights[layer]] + i] = sqrt(6.0 / (double)fan_in[layer]) * uniform(&seed);
	network_set(net, net->parameters, 0, net->block, values);
	free(values);
}

/* ---- The network ---- */

network *network_create(epg_context *context, int32_t type, int64_t inputs, int64_t hidden, int64_t outputs, int64_t max_n,
	uint64_t seed)
{
	network *net = host_memory(1, sizeof *net);
	const double one = 1;
	*net = (network){.context = context, .type = type, .inputs = inputs, .hidden = hidden, .outputs = outputs, .max_n = max_n};
	lay_out_block(net);
	allocate(net);
	network_set(net, net->one, 0, 1, &one);
	draw_weights(net, seed);
	net->shrink = make_plan(net, (product){.m = net->block, .n = 1, .k = 0, .beta = 0.5});
	net->step = make_plan(net, (product){.m = net->block, .n = 1, .k = 1, .beta = 1});
	network_shrink_gradient(net, 0); /* beta = 0: zeros, whatever the memory held */
	return net;
}

void network_destroy(network *net)
{
	if (!net)
		return;
	void *const memory[] = {net->parameters, net->gradient, net->x, net->h, net->z, net->dz, net->dh, net->mask, net->one};
	for (size_t i = 0; i < sizeof memory / sizeof *memory; i++)
		epg_free(net->context, memory[i]);
	while (net->plans) {
		network_plans *next = net->plans->next;
		destroy_plans(net->plans);
		net->plans = next;
	}
	epg_plan_destroy(net->shrink);
	epg_plan_destroy(net->step);
	free(net->host);
	free(net);
}

void network_forward(network *net, const void *images, int64_t n, int training)
{
	const network_plans *plans = plans_for(net, n);
	must(epg_upload(net->context, net->x, images, (size_t)(net->inputs * n) * element(net), NULL));
	must(epg_execute(training ? plans->hidden : plans->hidden_only, &EPG_OPERANDS(.a = part(net, net->parameters, PART_W1),
		.b = net->x, .bias = part(net, net->parameters, PART_B1), .d = net->h, .aux = training ? net->mask : NULL), NULL));
	must(epg_execute(plans->output, &EPG_OPERANDS(.a = part(net, net->parameters, PART_W2), .b = net->h,
		.bias = part(net, net->parameters, PART_B2), .d = net->z), NULL));
}

void network_backward(network *net, int64_t n, int mode)
{
	const network_plans *plans = plans_for(net, n);
	void *w1 = part(net, net->gradient, PART_W1), *w2 = part(net, net->gradient, PART_W2);
	must(epg_execute(plans->output_gradient[mode], &EPG_OPERANDS(.a = net->dz, .b = net->h, .c = w2, .d = w2,
		.bgrad = part(net, net->gradient, PART_B2)), NULL));
	must(epg_execute(plans->hidden_gradient[mode], &EPG_OPERANDS(.a = part(net, net->parameters, PART_W2), .b = net->dz,
		.d = net->dh, .aux = net->mask, .bgrad = part(net, net->gradient, PART_B1)), NULL));
	must(epg_execute(plans->input_gradient[mode], &EPG_OPERANDS(.a = net->dh, .b = net->x, .c = w1, .d = w1), NULL));
}

/* alpha and beta are given in the type of the products' scalars, which is the network's. */
typedef union scalar {
	float f32;
	double f64;
} scalar;

static scalar to_scalar(const network *net, double value)
{
	scalar s;
	set_element(net, &s, 0, value);
	return s;
}

void network_shrink_gradient(network *net, double factor)
{
	const scalar beta = to_scalar(net, factor);
	must(epg_execute(net->shrink, &EPG_OPERANDS(.c = net->gradient, .d = net->gradient, .beta = &beta), NULL));
}

void network_step(network *net, double rate)
{
	const scalar alpha = to_scalar(net, -rate);
	must(epg_execute(net->step, &EPG_OPERANDS(.a = net->gradient, .b = net->one, .c = net->parameters, .d = net->parameters,
		.alpha = &alpha), NULL));
}

/* ---- Softmax and cross-entropy ---- */

/* One picture, outputs numbers from first on: Z is replaced by dZ. The largest output is subtracted first, so that no
 * exponential overflows. */
static double softmax(const network *net, void *numbers, int64_t first, int label, double scale, int *largest, double *certainty)
{
	double top = get_element(net, numbers, first), sum = 0;
	*largest = 0;
	for (int i = 1; i < net->outputs; i++)
		if (get_element(net, numbers, first + i) > top) {
			top = get_element(net, numbers, first + i);
			*largest = i;
		}
	for (int i = 0; i < net->outputs; i++)
		sum += exp(get_element(net, numbers, first + i) - top);
	const double loss = log(sum) + top - get_element(net, numbers, first + label);
	*certainty = 1 / sum;
	for (int i = 0; i < net->outputs && scale > 0; i++)
		set_element(net, numbers, first + i,
			scale * (exp(get_element(net, numbers, first + i) - top) / sum - (i == label)));
	return loss;
}

network_score network_loss(network *net, const uint8_t *labels, int64_t n, double scale, uint8_t *predicted, float *certainty)
{
	const size_t nbytes = (size_t)(net->outputs * n) * element(net);
	network_score score = {0};
	must(epg_download(net->context, net->host, net->z, nbytes, NULL));
	must(epg_synchronize(net->context, NULL));
	for (int64_t j = 0; j < n; j++) {
		int largest;
		double sure;
		score.loss += softmax(net, net->host, j * net->outputs, labels[j], scale, &largest, &sure);
		score.correct += largest == labels[j];
		if (predicted)
			predicted[j] = (uint8_t)largest;
		if (certainty)
			certainty[j] = (float)sure;
	}
	if (scale > 0)
		must(epg_upload(net->context, net->dz, net->host, nbytes, NULL));
	return score;
}
