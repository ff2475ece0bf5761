/* SPDX-License-Identifier: Apache-2.0
 *
 * Both pictures are laid out by hand: sizes are pixels. The curves carry their names at their ends, where the eye looks
 * for the result, and axes begin and end at ticks. The sheet shows the first test pictures, not chosen ones, and below
 * them the mistakes that the network was surest of. */
#include "figures.h"

#include "svg.h"

#include <math.h>
#include <stdlib.h>

#define INK "#222"
#define SOFT "#777"
#define RULE "#e4e4e4"
#define TRAIN "#8a9bb0"
#define TEST "#d9480f"
#define WRONG "#c92a2a"

/* ---- Curves ---- */

enum { PANEL_WIDTH = 360, PANEL_HEIGHT = 250, LABEL_HEIGHT = 15 };

typedef struct axis {
	double low, high, step;
} axis;

typedef struct panel {
	double left, top;
	axis x, y;
} panel;

/* Steps of 1, 2 or 5 times a power of ten, at most wanted of them, and limits that are multiples of the step. */
static axis make_axis(double low, double high, int wanted)
{
	if (!(high > low))
		high = low + (low ? fabs(low) : 1);
	const double rough = (high - low) / wanted, power = pow(10, floor(log10(rough))), digit = rough / power;
	const double step = power * (digit <= 1.001 ? 1 : digit <= 2.001 ? 2 : digit <= 5.001 ? 5 : 10);
	return (axis){floor(low / step + 1e-9) * step, ceil(high / step - 1e-9) * step, step};
}

static double map_x(const panel *p, double x)
{
	return p->left + PANEL_WIDTH * (x - p->x.low) / (p->x.high - p->x.low);
}

static double map_y(const panel *p, double y)
{
	return p->top + PANEL_HEIGHT * (1 - (y - p->y.low) / (p->y.high - p->y.low));
}

static void draw_axes(svg *to, const panel *p, const char *title, const char *unit)
{
	const double bottom = p->top + PANEL_HEIGHT;
	const int decimals = p->y.step >= 1 ? 0 : p->y.step >= 0.1 ? 1 : p->y.step >= 0.01 ? 2 : 3;
	svg_text(to, p->left, p->top - 18, 14, SVG_LEFT, 1, INK, "%s", title);
	for (double y = p->y.low; y <= p->y.high + p->y.step / 2; y += p->y.step) {
		svg_line(to, p->left, map_y(p, y), p->left + PANEL_WIDTH, map_y(p, y), RULE, 1);
		svg_text(to, p->left - 8, map_y(p, y) + 4, 11, SVG_RIGHT, 0, SOFT, "%.*f%s", decimals, y, unit);
	}
	svg_line(to, p->left, bottom, p->left + PANEL_WIDTH, bottom, INK, 1);
	for (double x = ceil(p->x.low / p->x.step) * p->x.step; x <= p->x.high + 1e-9; x += p->x.step) {
		if (x < p->x.low)
			continue;
		svg_line(to, map_x(p, x), bottom, map_x(p, x), bottom + 5, INK, 1);
		svg_text(to, map_x(p, x), bottom + 19, 11, SVG_MIDDLE, 0, SOFT, "%g", x);
	}
	svg_text(to, p->left + PANEL_WIDTH / 2.0, bottom + 39, 12, SVG_MIDDLE, 0, SOFT, "epoch");
}

static void draw_curve(svg *to, const panel *p, const double *values, int count, const char *colour, double width)
{
	double *x = calloc((size_t)count, sizeof *x), *y = calloc((size_t)count, sizeof *y);
	int n = 0;
	for (int i = 0; i < count && x && y; i++)
		if (isfinite(values[i])) {
			x[n] = map_x(p, i + 1);
			y[n++] = map_y(p, values[i]);
		}
	svg_polyline(to, n, x, y, colour, width);
	for (int i = 0; i < n && count <= 40; i++)
		svg_circle(to, x[i], y[i], width + 0.6, colour);
	free(x);
	free(y);
}

/* The smallest and the largest finite value of two curves. */
static void range(const double *a, const double *b, int count, double *low, double *high)
{
	*low = INFINITY;
	*high = -INFINITY;
	for (int i = 0; i < 2 * count; i++) {
		const double value = i < count ? a[i] : b[i - count];
		if (isfinite(value)) {
			*low = fmin(*low, value);
			*high = fmax(*high, value);
		}
	}
	if (*low > *high) {
		*low = 0;
		*high = 1;
	}
}

/* One panel: the curve of the training and that of the test, with their names and last values at their ends. */
static void draw_panel(svg *to, double left, const char *title, const char *unit, const double *train, const double *test,
	int count, double ceiling)
{
	panel p = {.left = left, .top = 104};
	double low, high;
	range(train, test, count, &low, &high);
	p.y = make_axis(low, high, 5);
	if (p.y.high > ceiling)
		p.y.high = ceiling;
	p.x = make_axis(1, count > 1 ? count : 2, count < 10 ? count : 10);
	if (p.x.step < 1)
		p.x.step = 1;
	p.x.low = 1;
	p.x.high = count > 1 ? count : 2;
	draw_axes(to, &p, title, unit);
	draw_curve(to, &p, train, count, TRAIN, 2);
	draw_curve(to, &p, test, count, TEST, 2.5);
	double train_y = map_y(&p, train[count - 1]), test_y = map_y(&p, test[count - 1]);
	const double between = LABEL_HEIGHT - fabs(train_y - test_y), x = map_x(&p, count) + 9;
	if (between > 0) { /* push the two names apart */
		const double sign = train_y < test_y ? 0.5 : -0.5;
		train_y -= sign * between;
		test_y += sign * between;
	}
	const int decimals = *unit ? 1 : 3;
	if (isfinite(train_y))
		svg_text(to, x, train_y + 4, 12, SVG_LEFT, 0, TRAIN, "training %.*f%s", decimals, train[count - 1], unit);
	if (isfinite(test_y))
		svg_text(to, x, test_y + 4, 12, SVG_LEFT, 1, TEST, "test %.*f%s", decimals, test[count - 1], unit);
}

int figure_curves(const char *path, const epoch *epochs, int count, const char *subtitle)
{
	svg to;
	double *values = calloc(4 * (size_t)count + 1, sizeof *values);
	double *train_loss = values, *test_loss = values + count, *train = values + 2 * count, *test = values + 3 * count;
	if (!values || !svg_open(&to, path, 1080, 420, "Training")) {
		free(values);
		return 0;
	}
	for (int i = 0; i < count; i++) {
		train_loss[i] = epochs[i].train_loss;
		test_loss[i] = epochs[i].test_loss;
		train[i] = 100 * epochs[i].train_accuracy;
		test[i] = 100 * epochs[i].test_accuracy;
	}
	svg_text(&to, 60, 36, 20, SVG_LEFT, 1, INK, "%.2f %% of the test pictures are recognised after %d epoch%s", test[count - 1],
		count, count == 1 ? "" : "s");
	svg_text(&to, 60, 58, 12, SVG_LEFT, 0, SOFT, "%s", subtitle);
	draw_panel(&to, 60, "Loss (cross-entropy per picture)", "", train_loss, test_loss, count, INFINITY);
	draw_panel(&to, 590, "Accuracy", " %", train, test, count, 100);
	free(values);
	return svg_close(&to);
}

/* ---- Predictions ---- */

enum { ACROSS = 10, DOWN = 5, PICTURE = 84, CELL_WIDTH = 100, CELL_HEIGHT = 132, MARGIN = 40, HEAD = 88, GAP = 58 };

static void draw_picture(svg *to, const dataset *set, int64_t i, int64_t cell, double top, const uint8_t *predicted,
	const float *certainty)
{
	const double x = MARGIN + CELL_WIDTH * (double)(cell % ACROSS), y = top + CELL_HEIGHT * (double)(cell / ACROSS);
	const double middle = x + CELL_WIDTH / 2.0, left = x + (CELL_WIDTH - PICTURE) / 2.0;
	const int is = set->test.labels[i], seen = predicted[i], wrong = is != seen;
	svg_rect(to, left - 4.5, y - 4.5, PICTURE + 9, PICTURE + 9, 6, wrong ? "#fff0f0" : "#fafafa", wrong ? WRONG : RULE);
	svg_grey(to, left, y, PICTURE, PICTURE, set->rows, set->cols, set->test.images + i * set->pixels);
	svg_text(to, middle, y + PICTURE + 19, 11.5, SVG_MIDDLE, wrong, wrong ? WRONG : INK, "%s %.0f %%", dataset_class(set, seen),
		floor(100 * (double)certainty[i]));
	if (wrong)
		svg_text(to, middle, y + PICTURE + 33, 11, SVG_MIDDLE, 0, SOFT, "is %s", dataset_class(set, is));
}

/* The wrong picture with the highest certainty below (certainty, index) of the one before; -1 when there is none. */
static int64_t next_mistake(const dataset *set, const uint8_t *predicted, const float *certainty, int64_t before)
{
	int64_t best = -1;
	for (int64_t i = 0; i < set->test.count; i++) {
		if (predicted[i] == set->test.labels[i])
			continue;
		if (before >= 0 && (certainty[i] > certainty[before] || (certainty[i] == certainty[before] && i <= before)))
			continue;
		if (best < 0 || certainty[i] > certainty[best])
			best = i;
	}
	return best;
}

int figure_predictions(const char *path, const dataset *set, const uint8_t *predicted, const float *certainty)
{
	svg to;
	const int64_t shown = set->test.count < ACROSS * DOWN ? set->test.count : ACROSS * DOWN;
	const double second = HEAD + CELL_HEIGHT * (double)((shown + ACROSS - 1) / ACROSS) + GAP;
	int64_t wrong = 0, mistake = -1;
	if (!svg_open(&to, path, 2 * MARGIN + ACROSS * CELL_WIDTH, second + CELL_HEIGHT + 10, "Predictions"))
		return 0;
	for (int64_t i = 0; i < shown; i++) {
		draw_picture(&to, set, i, i, HEAD, predicted, certainty);
		wrong += predicted[i] != set->test.labels[i];
	}
	svg_text(&to, MARGIN + 4, 36, 20, SVG_LEFT, 1, INK, "What the network sees in the first %lld test pictures", (long long)shown);
	svg_text(&to, MARGIN + 4, 58, 12, SVG_LEFT, 0, SOFT, "%lld wrong, framed in red; the number is how sure the network is",
		(long long)wrong);
	svg_text(&to, MARGIN + 4, second - 22, 14, SVG_LEFT, 1, INK, "The mistakes it was surest of");
	for (int cell = 0; cell < ACROSS; cell++) {
		mistake = next_mistake(set, predicted, certainty, mistake);
		if (mistake < 0)
			break;
		draw_picture(&to, set, mistake, cell, second, predicted, certainty);
	}
	return svg_close(&to);
}
