/* SPDX-License-Identifier: Apache-2.0
 *
 * The demo's main program: trains a network (network.h) by stochastic gradient descent with momentum, shows how it goes,
 * and draws two pictures (figures.h). With --check it proves the gradients instead (check.h).
 *
 * A step of the descent with momentum μ and rate r is V ← μ·V + gradient; W ← W − r·V. The gradient block of the network
 * serves as V: it is shrunk by μ, the backward plans add to it, and the step takes it. */
#define _POSIX_C_SOURCE 200809L

#include "check.h"
#include "dataset.h"
#include "figures.h"
#include "network.h"
#include "options.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { HIDDEN = 128, BAR = 30 };

typedef struct training {
	const options *o;
	const dataset *set;
	network *net;
	epoch *epochs;
	int64_t *order; /* of the training pictures in this epoch */
	void *images;   /* one batch, on the host */
	uint8_t *labels, *predicted;
	float *certainty;
	uint64_t random;
	FILE *losses;   /* of each mini-batch, or NULL */
	double shown;   /* when the bar was last drawn */
} training;

static void *memory(size_t count, size_t nbytes)
{
	void *p = calloc(count, nbytes);
	if (!p) {
		fprintf(stderr, "No memory for %zu elements of %zu bytes.\n", count, nbytes);
		exit(1);
	}
	return p;
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- What the user sees ---- */

static int bar_wanted(const options *o)
{
	return !o->quiet && isatty(STDOUT_FILENO);
}

static void draw_bar(training *t, int64_t index, int64_t done, double began)
{
	const double time = now();
	const int full = (int)(BAR * done / t->set->train.count);
	if (!bar_wanted(t->o) || (time - t->shown < 0.1 && done < t->set->train.count))
		return;
	t->shown = time;
	printf("\repoch %3d/%d  [", (int)index + 1, (int)t->o->epochs);
	for (int i = 0; i < BAR; i++)
		fputs(i < full ? "█" : "·", stdout);
	printf("] %3d %%  %7.0f images/s ", (int)(100 * done / t->set->train.count), (double)done / (time - began));
	fflush(stdout);
}

static void print_epoch(const training *t, int64_t index)
{
	const epoch *e = t->epochs + index;
	if (t->o->quiet)
		return;
	printf("%sepoch %3d/%d  loss %.4f  test loss %.4f  test accuracy %.2f %%  %7.0f images/s\n",
		bar_wanted(t->o) ? "\r\033[K" : "", (int)index + 1, (int)t->o->epochs, e->train_loss, e->test_loss,
		100 * e->test_accuracy, (double)t->set->train.count / e->seconds);
	fflush(stdout);
}

/* ---- Training ---- */

/* A number from 0 to below - 1: the next of a 64-bit linear congruential generator (Knuth's MMIX), high bits. */
static int64_t draw(uint64_t *state, int64_t below)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (int64_t)((*state >> 33) % (uint64_t)below);
}

static void shuffle(training *t)
{
	for (int64_t i = t->set->train.count - 1; i > 0; i--) {
		const int64_t other = draw(&t->random, i + 1), moved = t->order[i];
		t->order[i] = t->order[other];
		t->order[other] = moved;
	}
}

static void train_epoch(training *t, int64_t index)
{
	const int64_t count = t->set->train.count;
	network_score sum = {0};
	const double began = now();
	shuffle(t);
	for (int64_t first = 0, n; first < count; first += n) {
		n = t->o->batch < count - first ? t->o->batch : count - first;
		const double progress = (double)(index * count + first) / (double)(t->o->epochs * count);
		dataset_batch(t->set, &t->set->train, t->order + first, 0, n, t->o->type, t->images, t->labels);
		network_forward(t->net, t->images, n, 1);
		const network_score score = network_loss(t->net, t->labels, n, 1.0 / (double)n, NULL, NULL);
		network_shrink_gradient(t->net, t->o->momentum);
		network_backward(t->net, n, GRADIENT_ADD);
		network_step(t->net, t->o->rate * (1 - progress));
		sum.loss += score.loss;
		sum.correct += score.correct;
		if (t->losses)
			fprintf(t->losses, "%.9g\n", score.loss / (double)n);
		draw_bar(t, index, first + n, began);
	}
	must(epg_synchronize(t->net->context, NULL));
	t->epochs[index].seconds = now() - began;
	t->epochs[index].train_loss = sum.loss / (double)count;
	t->epochs[index].train_accuracy = (double)sum.correct / (double)count;
}

static void test_epoch(training *t, int64_t index)
{
	const int64_t count = t->set->test.count;
	network_score sum = {0};
	for (int64_t first = 0, n; first < count; first += n) {
		n = t->o->batch < count - first ? t->o->batch : count - first;
		dataset_batch(t->set, &t->set->test, NULL, first, n, t->o->type, t->images, t->labels);
		network_forward(t->net, t->images, n, 0);
		const network_score score = network_loss(t->net, t->labels, n, 0, t->predicted + first, t->certainty + first);
		sum.loss += score.loss;
		sum.correct += score.correct;
	}
	t->epochs[index].test_loss = sum.loss / (double)count;
	t->epochs[index].test_accuracy = (double)sum.correct / (double)count;
}

static training begin(const options *o, epg_context *context, const dataset *set)
{
	training t = {.o = o, .set = set, .random = o->seed};
	const size_t batch = (size_t)o->batch, tests = (size_t)set->test.count;
	t.net = network_create(context, o->type, set->pixels, HIDDEN, set->classes, o->batch, o->seed);
	t.epochs = memory((size_t)o->epochs, sizeof *t.epochs);
	t.order = memory((size_t)set->train.count, sizeof *t.order);
	t.images = memory(batch * (size_t)set->pixels, (size_t)epg_type_nbits(o->type) / 8);
	t.labels = memory(batch, 1);
	t.predicted = memory(tests, 1);
	t.certainty = memory(tests, sizeof *t.certainty);
	for (int64_t i = 0; i < set->train.count; i++)
		t.order[i] = i;
	return t;
}

static void end(training *t)
{
	network_destroy(t->net);
	free(t->epochs);
	free(t->order);
	free(t->images);
	free(t->labels);
	free(t->predicted);
	free(t->certainty);
}

/* ---- Pictures ---- */

static int draw_figures(const training *t, const char *subtitle)
{
	char curves[4096], predictions[4096];
	snprintf(curves, sizeof curves, "%s/curves.svg", t->o->out);
	snprintf(predictions, sizeof predictions, "%s/predictions.svg", t->o->out);
	if (mkdir(t->o->out, 0777) && errno != EEXIST) {
		fprintf(stderr, "%s: cannot be made: %s.\n", t->o->out, strerror(errno));
		return 0;
	}
	if (!figure_curves(curves, t->epochs, (int)t->o->epochs, subtitle)) {
		fprintf(stderr, "%s: cannot be written: %s.\n", curves, strerror(errno));
		return 0;
	}
	if (!figure_predictions(predictions, t->set, t->predicted, t->certainty)) {
		fprintf(stderr, "%s: cannot be written: %s.\n", predictions, strerror(errno));
		return 0;
	}
	if (!t->o->quiet)
		printf("Pictures: %s and %s\n", curves, predictions);
	return 1;
}

/* Returns 1 when the training ended with a finite loss and its pictures are drawn. */
static int train(const options *o, epg_context *context, const dataset *set, const char *machine)
{
	training t = begin(o, context, set);
	const double began = now();
	char subtitle[512];
	if (o->losses && !(t.losses = fopen(o->losses, "w"))) {
		perror(o->losses);
		end(&t);
		return 0;
	}
	for (int64_t index = 0; index < o->epochs; index++) {
		train_epoch(&t, index);
		test_epoch(&t, index);
		print_epoch(&t, index);
	}
	const double seconds = now() - began;
	const epoch *last = t.epochs + o->epochs - 1;
	printf("Test accuracy %.2f %% after %d epochs in %.1f s.\n", 100 * last->test_accuracy, (int)o->epochs, seconds);
	snprintf(subtitle, sizeof subtitle, "%lld-%d-%lld network, mini-batches of %lld, momentum %g, learning rate from %g to 0 · %s · %.1f s",
		(long long)set->pixels, HIDDEN, (long long)set->classes, (long long)o->batch, o->momentum, o->rate, machine, seconds);
	int good = isfinite(last->train_loss) && isfinite(last->test_loss);
	if (t.losses && fclose(t.losses)) {
		perror(o->losses);
		good = 0;
	}
	if (!isfinite(last->train_loss) || !isfinite(last->test_loss))
		fputs("The training diverged: the loss is not finite. A smaller --lr helps.\n", stderr);
	good &= draw_figures(&t, subtitle);
	end(&t);
	return good;
}

/* ---- Backend and main ---- */

/* Says which backend "auto" took, and why. The context has decided; epg_backend_status knows what it saw. */
static void explain_choice(const char *taken)
{
	char text[512] = "";
	const char *forced = getenv("EPIGEMM_BACKEND");
	const epg_status cuda = epg_backend_status("cuda", text, sizeof text, NULL);
	if (forced && *forced)
		printf("Backend auto took %s, because EPIGEMM_BACKEND=%s.\n", taken, forced);
	else
		printf("Backend auto took %s, because cuda %s: %s\n", taken, cuda == EPG_SUCCESS ? "can be used" : "cannot be used", text);
}

static epg_context *make_context(const options *o, char *machine, size_t machine_nbytes)
{
	epg_context_options wanted;
	epg_context_info info;
	epg_context *context = NULL;
	must(epg_context_options_init(&wanted, sizeof wanted));
	wanted.backend = o->backend;
	wanted.threads = (int32_t)o->threads;
	must(epg_context_create(&wanted, &context));
	must(epg_context_get_info(context, &info, sizeof info));
	if (!o->quiet && !strcmp(o->backend, "auto"))
		explain_choice(info.backend);
	if (strcmp(info.backend, "cpu"))
		snprintf(machine, machine_nbytes, "%s on %s", info.library, info.device);
	else
		snprintf(machine, machine_nbytes, "%s, %s, %d thread%s", info.library, info.isa, (int)info.threads,
			info.threads == 1 ? "" : "s");
	if (!o->quiet)
		printf("Backend %s: %s.\n", info.backend, machine);
	return context;
}

int main(int argc, char **argv)
{
	options o;
	dataset set;
	char text[8192], machine[256];
	options_read(&o, argc, argv);
	epg_context *context = make_context(&o, machine, sizeof machine);
	if (!dataset_read(o.data, &set, text, sizeof text)) {
		fprintf(stderr, "%s\n--data DIR names a directory with an IDX set; Debian's package dataset-fashion-mnist has one.\n", text);
		epg_context_destroy(context);
		return 1;
	}
	if (!o.quiet)
		printf("Data %s: %lld training and %lld test pictures of %lld×%lld in %lld classes.\n", o.data, (long long)set.train.count,
			(long long)set.test.count, (long long)set.rows, (long long)set.cols, (long long)set.classes);
	if (o.batch > set.train.count)
		o.batch = set.train.count;
	const int good = o.check ? check_gradients(context, &set, o.seed) : train(&o, context, &set, machine);
	dataset_free(&set);
	epg_context_destroy(context);
	return good ? 0 : 1;
}
