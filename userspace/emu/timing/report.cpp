// SPDX-License-Identifier: MIT
#include "report.hpp"

#include "exchange.hpp"
#include "fetch.hpp"
#include "paper.hpp"
#include "svg_plot.hpp"

#include <cmath>
#include <format>

namespace sluice::timing {

namespace {

constexpr u64 smallest = 1 << 10, largest = 1 << 30;
constexpr std::array collectives{Collective::all_gather, Collective::all_to_all};

std::string size_name(u64 size)
{
	if (size >= 1 << 20)
		return std::format("{} MB", size >> 20);
	return std::format("{} KB", size >> 10);
}

std::string_view collective_name(Collective c)
{
	return c == Collective::all_gather ? "all-gather" : "all-to-all";
}

std::string way_name(Collective c, Way w)
{
	if (w == Way::pair)
		return c == Collective::all_gather ? "bcst" : "swap";
	return w == Way::pcpy ? "pcpy" : "b2b";
}

std::string column_name(Collective c, std::size_t column)
{
	auto [way, prelaunch] = paper_columns[column];

	return way_name(c, way) + (prelaunch ? "+PL" : "");
}

std::string cells_row(const PaperRow &row, const Machine &m)
{
	Time pcpy = latte_time({row.collective, Way::pcpy, false}, row.size, m);
	auto model = model_row(row, m);
	std::string out =
		std::format("{:10} {:>6} {:1} {:8.1f}", collective_name(row.collective),
			    size_name(row.size), row.judge ? "*" : "", pcpy / 1e3);

	for (std::size_t i = 0; i < model.size(); i++)
		out += std::format("   {:4.2f}/{:4.2f} {:+4.0f}%", model[i],
				   row.speedup[i],
				   100 * (model[i] / row.speedup[i] - 1));
	return out + "\n";
}

std::string cells_head(Collective c)
{
	std::string out = std::format("{:10} {:>6}   {:>8}", "", "size", "pcpy us");

	for (std::size_t i = 0; i < paper_columns.size(); i++)
		out += std::format("   {:^15}", column_name(c, i));
	return out + "\n";
}

std::string score_line(std::string_view what, Cells which, const Machine &m)
{
	Score s = score(which, m);
	Collective c = s.worst_row->collective;

	return std::format("{:24} {:2} cells: RMS error {:4.1f} %, {}\n"
			   "{:24}           worst {:+.0f} %, {}: {} {} {}\n",
			   what, s.cells, 100 * s.rms, goal("10 %", s.rms <= 0.10), "",
			   100 * s.worst, goal("20 %", std::abs(s.worst) <= 0.20),
			   collective_name(c), size_name(s.worst_row->size),
			   column_name(c, s.worst_column));
}

} // namespace

std::string model_heading(std::string_view what)
{
	return std::format("{}\nMODEL: virtual time of docs/model.md; no MI300X was "
			   "used.\n\n",
			   what);
}

std::string goal(std::string_view what, bool met)
{
	return std::format("goal {}: {}", what, met ? "met" : "MISSED");
}

std::string cells_table(const Machine &m)
{
	std::string out =
		model_heading("Speed-up over pcpy, 8 GPUs: model / DMA-Latte, error");

	for (Collective c : collectives) {
		out += cells_head(c);
		for (const PaperRow &row : paper_rows())
			if (row.collective == c)
				out += cells_row(row, m);
		out += "\n";
	}
	return out + score_line("parameters fitted to", Cells::fitted, m) +
	       score_line("* kept back", Cells::judge, m) +
	       score_line("all", Cells::all, m);
}

namespace {

// As in a row of the paper, and pcpy itself, which is 1.
using Columns = std::array<cli::plot_line, paper_columns.size() + 1>;

Columns empty_columns(Collective c, std::string_view prefix, bool dots_only)
{
	Columns out;

	out[0] = {std::format("{}pcpy", prefix), {}, dots_only};
	for (std::size_t i = 0; i < paper_columns.size(); i++)
		out[i + 1] = {
			std::format("{}{}", prefix, column_name(c, i)), {}, dots_only};
	return out;
}

void add_row(Columns &to, u64 size, const std::array<double, 5> &speedup)
{
	auto x = static_cast<double>(size);

	to[0].points.emplace_back(x, 1);
	for (std::size_t i = 0; i < speedup.size(); i++)
		to[i + 1].points.emplace_back(x, speedup[i]);
}

cli::plot_panel panel(Collective c, const Machine &m)
{
	Columns model = empty_columns(c, "", false);
	Columns paper = empty_columns(c, "paper: ", true);
	cli::plot_panel out{
		std::format("{}: speed-up over pcpy", collective_name(c)), {}, false};

	for (u64 size = smallest; size <= largest; size *= 2)
		add_row(model, size, model_row({c, size, {}, false}, m));
	for (const PaperRow &row : paper_rows())
		if (row.collective == c)
			add_row(paper, row.size, row.speedup);
	// in this order a variant has one colour
	out.lines.insert(out.lines.end(), model.begin(), model.end());
	out.lines.insert(out.lines.end(), paper.begin(), paper.end());
	return out;
}

} // namespace

std::string speedup_plot(const Machine &m)
{
	return cli::svg_plot(
		"Collectives of eight GPUs by their copy engines",
		{panel(Collective::all_gather, m), panel(Collective::all_to_all, m)},
		"Lines: MODEL (docs/model.md), no MI300X was used. Dots: "
		"DMA-Latte. PL: prelaunched.");
}

std::string winners_table(const Machine &m)
{
	std::string out =
		model_heading("The quickest prelaunched variant: model / DMA-Latte");
	unsigned right = 0, all = 0;

	for (Collective c : collectives)
		for (u64 size = smallest; size <= largest; size *= 2) {
			Way ours = model_winner(c, size, m);
			Way theirs = paper_winner(c, size);
			all++;
			right += ours == theirs;
			if (ours != theirs)
				out += std::format("{} {:>6}: {} / {}\n",
						   collective_name(c), size_name(size),
						   way_name(c, ours),
						   way_name(c, theirs));
		}
	return out + std::format("{} of {} right, {}; sizes 1 KB to 1 GB, those that "
				 "are not right are above\n",
				 right, all, goal("9 of 10", 10 * right >= 9 * all));
}

std::string phases_table(const Machine &m)
{
	std::string out = model_heading("Phases of one copy between two GPUs, %: "
					"model / DMA-Latte");
	double squares = 0, count = 0;

	out += std::format("{:>7} {:>9} {:>12} {:>12} {:>12} {:>12}\n", "size",
			   "total us", "control", "schedule", "copy", "sync");
	for (const PaperPhases &row : paper_phases()) {
		Phases p = copy_phases(row.bytes, m);
		std::array part{p.control, p.schedule, p.copy, p.sync};
		out += std::format("{:>7} {:9.2f}", size_name(row.bytes),
				   p.total() / 1e3);
		for (std::size_t i = 0; i < part.size(); i++) {
			double percent = 100 * part[i] / p.total();
			squares += std::pow(percent - row.percent[i], 2);
			count++;
			out += std::format("   {:4.1f}/{:4.0f}", percent,
					   row.percent[i]);
		}
		out += "\n";
	}
	return out +
	       std::format("RMS error {:.1f} points\n", std::sqrt(squares / count));
}

std::string batches_table(const Machine &m)
{
	std::string out = model_heading(
		"Collectives of libsluice's group, by its planner and the kernel's, us: "
		"DMA-Latte's program / ours");

	for (Collective c : collectives) {
		out += std::format("{:10} {:>6}  {:^15}", "", "size",
				   way_name(c, Way::pcpy));
		for (std::size_t i = 0; i < paper_columns.size(); i++)
			out += std::format("  {:^15}", column_name(c, i));
		out += "\n";
		for (const PaperRow &row : paper_rows()) {
			if (row.collective != c)
				continue;
			out += std::format("{:10} {:>6}", collective_name(c),
					   size_name(row.size));
			auto both = [&](Way w, bool prelaunch) {
				Time theirs =
					latte_time({c, w, prelaunch}, row.size, m);
				Time ours = exchange_time(
					exchange_of(c, w, prelaunch, row.size),
					variant_of(c, w), m);
				out += std::format("  {:7.1f}/{:7.1f}", theirs / 1e3,
						   ours / 1e3);
			};
			both(Way::pcpy, false);
			for (auto [way, prelaunch] : paper_columns)
				both(way, prelaunch);
			out += "\n";
		}
		out += "\n";
	}
	return out +
	       "Ours has no cost of system calls, of the kernel's scheduler or of "
	       "page tables: nobody\nhas published those.\n";
}

namespace {

// vLLM's thread: 4096 blocks, ms, by a loop of copies and by one batch of HIP's. It does
// not say in which direction.
struct Published {
	u64 bytes;
	double loop, batch;
};

constexpr std::array<Published, 3> vllm{
	{{4 << 10, 22.4, 10.5}, {32 << 10, 40.7, 40.9}, {128 << 10, 50.5, 50.5}}};

std::string fetch_rows(Direction where, const Machine &m)
{
	std::string out;

	for (const Published &p : vllm)
		for (u32 blocks : {64u, 512u, 4096u}) {
			out += std::format("{:>7} {:>7}", size_name(p.bytes), blocks);
			for (Fetch how : {Fetch::loop, Fetch::batch, Fetch::prepared,
					  Fetch::prelaunched})
				out += std::format(
					" {:11.3f}",
					fetch_time(how, where, blocks, p.bytes, m) /
						1e6);
			if (where == Direction::swap_out && blocks == 4096)
				out += std::format("   {:.1f}, {:.1f}", p.loop,
						   p.batch);
			out += "\n";
		}
	return out;
}

} // namespace

std::string fetch_table(const Machine &m)
{
	// a test says that either direction takes the same
	constexpr std::array directions{
		std::pair{Direction::swap_out, "in one direction, either one"},
		std::pair{Direction::both, "by turns in both"}};
	std::string out =
		model_heading("Blocks of a KV cache between a GPU and host memory, ms");

	for (auto [where, name] : directions)
		out += std::format(
			"{}:\n{:>7} {:>7} {:>11} {:>11} {:>11} {:>11}{}\n{}\n", name,
			"block", "blocks", "loop", "batch", "prepared", "prelaunched",
			where == Direction::both ? "" : "   vLLM: loop, batch",
			fetch_rows(where, m));
	return out +
	       std::format(
		       "batch and prepared have the host's part, too: instructions of "
		       "docs/uapi.md, {} ns each.\nThe loop has none but doorbells. "
		       "prelaunched is from the release on, when the host's part\nis over. "
		       "vLLM's figures are of HIP, whose runtime is not modelled.\n",
		       m.host_instruction);
}

std::string parameters_table(const MachineFile &f)
{
	std::string out = model_heading("Parameters");

	for (std::size_t i = 0; i < parameters.size(); i++)
		out += std::format("{:14} {:8.3f} {:5} {:9}  {}\n", parameters[i].key,
				   f.machine.*parameters[i].value, parameters[i].unit,
				   f.notes[i].basis, f.notes[i].source);
	return out;
}

std::string batches_of(const Program &p, const Result &r)
{
	std::string out = model_heading("Batches, us of virtual time");
	std::vector<std::pair<u64, u32>> sums(p.steps.size());

	for (const Step &s : p.steps)
		if (s.batch != Step::none) {
			sums[s.batch].first += s.bytes;
			sums[s.batch].second++;
		}
	out += std::format("{:>8} {:>12} {:>12} {:>8} {:>14}\n", "doorbell", "start",
			   "end", "packets", "bytes");
	for (const Batch &b : r.batches)
		out += std::format("{:8} {:12.3f} {:12.3f} {:8} {:14}\n", b.submit,
				   b.start / 1e3, b.end / 1e3, sums[b.submit].second,
				   sums[b.submit].first);
	return out +
	       std::format("{} steps, end at {:.3f} us\n", p.steps.size(), r.end / 1e3);
}

} // namespace sluice::timing
