// SPDX-License-Identifier: MIT
#include "paper.hpp"

#include <cmath>
#include <map>

namespace sluice::timing {

namespace {

constexpr u64 KB = 1 << 10, MB = 1 << 20;
constexpr auto ag = Collective::all_gather, aa = Collective::all_to_all;

// The public artifact of DMA-Latte (AMDResearch/AMD-DMA-Latte), which has ratios only.
constexpr std::array<PaperRow, 9> rows{{
	{ag, 1 * KB, {2.87, 1.59, 3.67, 2.58, 4.10}, false},
	{ag, 128 * KB, {3.48, 2.05, 4.52, 3.07, 4.58}, false},
	{ag, 512 * KB, {3.31, 1.96, 3.73, 2.05, 1.58}, true},
	{ag, 4 * MB, {2.29, 1.10, 1.23, 0.61, 0.65}, false},
	{ag, 64 * MB, {1.11, 0.46, 0.48, 0.17, 0.17}, false},
	{aa, 1 * KB, {2.55, 1.81, 3.81, 2.80, 4.10}, false},
	{aa, 64 * KB, {2.57, 1.83, 3.76, 2.73, 3.53}, false},
	{aa, 1 * MB, {2.23, 1.55, 2.65, 1.22, 1.41}, true},
	{aa, 4 * MB, {1.86, 1.18, 1.67, 0.52, 0.54}, false},
}};

constexpr std::array<PaperPhases, 9> phases{{
	{1 * KB, {5, 31, 29, 35}},
	{16 * KB, {4, 30, 33, 33}},
	{64 * KB, {4, 23, 46, 27}},
	{128 * KB, {7, 20, 51, 22}},
	{256 * KB, {3, 17, 62, 18}},
	{512 * KB, {2, 13, 72, 13}},
	{1 * MB, {1, 10, 79, 10}},
	{2 * MB, {1, 5, 89, 5}},
	{4 * MB, {1, 3, 93, 3}},
}};

bool wanted(const PaperRow &row, Cells which)
{
	return which == Cells::all || row.judge == (which == Cells::judge);
}

} // namespace

std::span<const PaperRow> paper_rows()
{
	return rows;
}
std::span<const PaperPhases> paper_phases()
{
	return phases;
}

Way paper_winner(Collective c, u64 size)
{
	bool gather = c == ag;

	if (size <= (gather ? 128 : 32) * KB)
		return Way::b2b;
	return size <= (gather ? 512 * KB : 2 * MB) ? Way::pair : Way::pcpy;
}

Way model_winner(Collective c, u64 size, const Machine &m)
{
	Way best = Way::pcpy;
	Time least = latte_time({c, best, true}, size, m);

	for (Way w : {Way::pair, Way::b2b})
		if (Time t = latte_time({c, w, true}, size, m); t < least) {
			least = t;
			best = w;
		}
	return best;
}

std::array<double, 5> model_row(const PaperRow &row, const Machine &m)
{
	std::array<double, 5> out{};
	Time pcpy = latte_time({row.collective, Way::pcpy, false}, row.size, m);

	for (std::size_t i = 0; i < out.size(); i++) {
		auto [way, prelaunch] = paper_columns[i];
		out[i] = pcpy /
			 latte_time({row.collective, way, prelaunch}, row.size, m);
	}
	return out;
}

Score score(Cells which, const Machine &m)
{
	Score s;
	double squares = 0;

	for (const PaperRow &row : rows) {
		if (!wanted(row, which))
			continue;
		auto model = model_row(row, m);
		for (std::size_t i = 0; i < model.size(); i++) {
			double error = model[i] / row.speedup[i] - 1;
			squares += error * error;
			s.cells++;
			if (std::abs(error) > std::abs(s.worst)) {
				s.worst = error;
				s.worst_row = &row;
				s.worst_column = i;
			}
		}
	}
	s.rms = std::sqrt(squares / static_cast<double>(s.cells));
	return s;
}

namespace {

// Whether a step up or down makes the score better.
bool improve(double &value, double step, double &least, const Machine &m)
{
	const double before = value;

	for (double factor : {1 + step, 1 / (1 + step)}) {
		value = before * factor;
		if (m.fetch() < 0)
			continue;
		if (double now = score(Cells::fitted, m).rms; now < least) {
			least = now;
			return true;
		}
	}
	value = before;
	return false;
}

} // namespace

Machine fit(MachineFile from)
{
	Machine &m = from.machine;
	double least = score(Cells::fitted, m).rms;

	for (double step = 0.256; step >= 0.002;) {
		bool better = false;
		for (std::size_t i = 0; i < parameters.size(); i++)
			if (from.notes[i].basis == "fitted")
				better |=
					improve(m.*parameters[i].value, step, least, m);
		if (!better)
			step /= 2;
	}
	return m;
}

} // namespace sluice::timing
