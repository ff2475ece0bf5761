// SPDX-License-Identifier: Apache-2.0
//
// The API from C++17: the header compiles, enums are ints, structs are filled by their init functions (the macro
// EPG_OPERANDS is C only), and handles sit in unique_ptr with the destroy functions.
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include <epigemm.h>

extern "C" {
#include "tap.h"
}

#ifdef EPG_OPERANDS
#error "EPG_OPERANDS needs compound literals, which C++ does not have"
#endif

static_assert(std::is_standard_layout<epg_matmul_desc>::value && std::is_trivial<epg_operands>::value, "plain structs");
static_assert(sizeof(epg_matrix) == 40 && sizeof(epg_vector) == 24, "no padding that a binding would have to guess");

using Context = std::unique_ptr<epg_context, decltype(&epg_context_destroy)>;
using Plan = std::unique_ptr<epg_plan, decltype(&epg_plan_destroy)>;

static Context make_context()
{
	epg_context_options options;
	epg_context *context = nullptr;
	epg_context_options_init(&options, sizeof options);
	options.threads = 1;
	epg_context_create(&options, &context);
	return Context(context, epg_context_destroy);
}

static Plan make_plan(const Context &context, const epg_matmul_desc &desc)
{
	epg_plan *plan = nullptr;
	epg_plan_create(context.get(), &desc, nullptr, &plan);
	return Plan(plan, epg_plan_destroy);
}

template <class Print> static std::string text_of(Print print)
{
	size_t needed = 0;
	if (print(nullptr, 0, &needed) != EPG_SUCCESS)
		return "";
	std::string text(needed, '?');
	print(&text[0], text.size(), nullptr);
	text.resize(std::strlen(text.c_str()));
	return text;
}

int main()
{
	Context context = make_context();
	ok(context != nullptr, "context");
	epg_matmul_desc desc;
	ok(epg_matmul_desc_init(&desc, sizeof desc, 2, 2, 3, EPG_F32, EPG_ROW) == EPG_SUCCESS, "desc");
	desc.epilog = EPG_EPILOG_RELU_BIAS;
	desc.axis = EPG_PER_COLUMN;
	Plan plan = make_plan(context, desc);
	ok(plan != nullptr, "plan %s", epg_last_error());

	const std::vector<float> a = { 1, 2, 3, 4, 5, 6 }, b = { 1, 0, 0, 1, 1, 1 }, bias = { 10, -12 }, want = { 14, 0, 20, 0 - 0.0f };
	std::vector<float> d(4, -1);
	epg_operands x;
	ok(epg_operands_init(&x, sizeof x) == EPG_SUCCESS, "operands");
	x.a = a.data();
	x.b = b.data();
	x.bias = bias.data();
	x.d = d.data();
	ok(plan && epg_execute(plan.get(), &x, nullptr) == EPG_SUCCESS, "execute %s", epg_last_error());
	ok(d == want, "relu([1 2 3; 4 5 6]·B + bias) = %g %g %g %g", (double)d[0], (double)d[1], (double)d[2], (double)d[3]);

	context.reset();
	ok(plan && epg_execute(plan.get(), &x, nullptr) == EPG_SUCCESS && d == want, "the plan outlives its context");
	std::string line = text_of([&](char *text, size_t n, size_t *needed) { return epg_matmul_desc_print(&desc, text, n, needed); });
	ok(line.find("m=2 n=2 k=3") != std::string::npos && line.find("relu_bias") != std::string::npos, "the problem as a line: %s", line.c_str());
	std::string why = text_of([&](char *text, size_t n, size_t *needed) { return epg_plan_explain(plan.get(), text, n, needed); });
	ok(why.find("relu_bias") != std::string::npos, "explain is a text of %d bytes", (int)why.size());
	return done_testing();
}
