/* SPDX-License-Identifier: Apache-2.0
 *
 * Plain fprintf. A grey picture becomes one path per grey, made of the rows' runs of that grey: a tenth of the size of a
 * rectangle per pixel, and sharp at any zoom. */
#include "svg.h"

#include <stdarg.h>

enum { GREYS = 16 };

static void put_escaped(svg *to, const char *text)
{
	for (; *text; text++)
		switch (*text) {
		case '&': fputs("&amp;", to->file); break;
		case '<': fputs("&lt;", to->file); break;
		case '>': fputs("&gt;", to->file); break;
		case '"': fputs("&quot;", to->file); break;
		default: fputc(*text, to->file);
		}
}

int svg_open(svg *to, const char *path, double width, double height, const char *title)
{
	to->file = fopen(path, "w");
	if (!to->file)
		return 0;
	fprintf(to->file,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%g\" height=\"%g\" viewBox=\"0 0 %g %g\" "
		"font-family=\"Helvetica Neue, Helvetica, Arial, Liberation Sans, DejaVu Sans, sans-serif\">\n<title>",
		width, height, width, height);
	put_escaped(to, title);
	fputs("</title>\n", to->file);
	svg_rect(to, 0, 0, width, height, 0, "#fff", "none");
	return 1;
}

int svg_close(svg *to)
{
	fputs("</svg>\n", to->file);
	const int failed = ferror(to->file);
	return !fclose(to->file) && !failed;
}

void svg_rect(svg *to, double x, double y, double width, double height, double radius, const char *fill, const char *stroke)
{
	fprintf(to->file, "<rect x=\"%.5g\" y=\"%.5g\" width=\"%.5g\" height=\"%.5g\" rx=\"%g\" fill=\"%s\" stroke=\"%s\"/>\n", x, y,
		width, height, radius, fill, stroke);
}

void svg_line(svg *to, double x1, double y1, double x2, double y2, const char *colour, double width)
{
	fprintf(to->file, "<line x1=\"%.5g\" y1=\"%.5g\" x2=\"%.5g\" y2=\"%.5g\" stroke=\"%s\" stroke-width=\"%g\"/>\n", x1, y1, x2, y2,
		colour, width);
}

void svg_circle(svg *to, double x, double y, double radius, const char *fill)
{
	fprintf(to->file, "<circle cx=\"%.5g\" cy=\"%.5g\" r=\"%g\" fill=\"%s\"/>\n", x, y, radius, fill);
}

void svg_polyline(svg *to, int n, const double *x, const double *y, const char *colour, double width)
{
	fprintf(to->file, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"%g\" stroke-linejoin=\"round\" "
		"stroke-linecap=\"round\" points=\"", colour, width);
	for (int i = 0; i < n; i++)
		fprintf(to->file, "%s%.5g,%.5g", i ? " " : "", x[i], y[i]);
	fputs("\"/>\n", to->file);
}

void svg_text(svg *to, double x, double y, double size, int anchor, int bold, const char *colour, const char *format, ...)
{
	static const char *const anchors[] = {"start", "middle", "end"};
	char text[512];
	va_list list;
	va_start(list, format);
	vsnprintf(text, sizeof text, format, list);
	va_end(list);
	fprintf(to->file, "<text x=\"%.5g\" y=\"%.5g\" font-size=\"%g\" text-anchor=\"%s\"%s fill=\"%s\">", x, y, size,
		anchors[anchor], bold ? " font-weight=\"bold\"" : "", colour);
	put_escaped(to, text);
	fputs("</text>\n", to->file);
}

static int level(uint8_t byte)
{
	return byte * GREYS / 256;
}

void svg_grey(svg *to, double x, double y, double width, double height, int64_t rows, int64_t cols, const uint8_t *bytes)
{
	const double across = width / (double)cols, down = height / (double)rows, scale = across < down ? across : down;
	fprintf(to->file, "<g transform=\"translate(%.5g %.5g) scale(%.5g)\" shape-rendering=\"crispEdges\">\n",
		x + (width - scale * (double)cols) / 2, y + (height - scale * (double)rows) / 2, scale);
	for (int grey = 1; grey < GREYS; grey++) { /* grey 0 is the paper */
		int runs = 0;
		for (int64_t row = 0; row < rows; row++)
			for (int64_t col = 0, end; col < cols; col = end) {
				for (end = col + 1; end < cols && level(bytes[row * cols + end]) == level(bytes[row * cols + col]);)
					end++;
				if (level(bytes[row * cols + col]) != grey)
					continue;
				fprintf(to->file, "%sM%d %dh%dv1h-%dz", runs++ ? "" : "<path d=\"", (int)col, (int)row, (int)(end - col),
					(int)(end - col));
			}
		const int shade = 255 - 255 * grey / (GREYS - 1);
		if (runs)
			fprintf(to->file, "\" fill=\"#%02x%02x%02x\"/>\n", shade, shade, shade);
	}
	fputs("</g>\n", to->file);
}
