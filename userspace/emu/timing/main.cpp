// SPDX-License-Identifier: MIT
// sluice-model: virtual time of what SDMA engines execute.
#include "exchange.hpp"
#include "paper.hpp"
#include "regret.hpp"
#include "report.hpp"
#include "trace.hpp"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <fstream>
#include <iostream>
#include <sstream>

using namespace sluice::timing;

namespace {

struct Options {
	std::string machine, trace;
	std::vector<std::string> files;
	std::string collective, way;
	u64 size = 0;
	bool prelaunch = false, batches = false;

	MachineFile read() const
	{
		return machine.empty() ? mi300x() : read_machine(machine);
	}
};

std::string contents(const std::string &path)
{
	std::ifstream in(path);
	std::ostringstream text;

	if (!in || !(text << in.rdbuf()))
		throw std::runtime_error(path + ": cannot be read");
	return text.str();
}

void show(const Options &o, const Program &p)
{
	Result r = simulate(p, o.read().machine);

	std::cout << batches_of(p, r);
	if (o.trace.empty())
		return;
	std::ofstream out(o.trace);
	if (!(out << write_trace(p, r)).flush())
		throw std::runtime_error(o.trace + ": cannot be written");
}

void tables(const Options &o)
{
	Machine m = o.read().machine;

	for (auto table :
	     {cells_table, winners_table, phases_table, batches_table, fetch_table})
		std::cout << table(m) << "\n";
}

void replay(const Options &o)
{
	std::vector<TraceFile> files;

	for (const std::string &path : o.files)
		files.push_back({path, contents(path)});
	show(o, read_trace(files));
}

void collective(const Options &o)
{
	auto c = o.collective == "all-gather" ? Collective::all_gather
					      : Collective::all_to_all;
	Way w = o.way == "pcpy" ? Way::pcpy : o.way == "b2b" ? Way::b2b : Way::pair;

	show(o, o.batches ? exchange_program(exchange_of(c, w, o.prelaunch, o.size),
					     variant_of(c, w))
			  : latte_program({c, w, o.prelaunch}, o.size));
}

void print_fit(const Options &o)
{
	MachineFile f = o.read();

	f.machine = fit(f);
	std::cout << parameters_table(f) << "\n" << cells_table(f.machine);
}

void add_collective(CLI::App &app, Options &o)
{
	auto *c = app.add_subcommand("collective", "one collective of DMA-Latte's");

	c->add_option("collective", o.collective)
		->required()
		->check(CLI::IsMember({"all-gather", "all-to-all"}));
	c->add_option("variant", o.way)
		->required()
		->check(CLI::IsMember({"pcpy", "pair", "b2b"}));
	c->add_option("size", o.size, "bytes of the whole collective")
		->required()
		->check(CLI::Range(u64{512}, u64{1} << 32))
		->transform(CLI::AsSizeValue(false));
	c->add_flag("--prelaunch", o.prelaunch, "enqueue early, release by a store");
	c->add_flag("--batches", o.batches, "by libsluice's group");
	c->add_option("--trace", o.trace, "write Chrome trace JSON here");
	c->callback([&o] { collective(o); });
}

void add_commands(CLI::App &app, Options &o)
{
	app.add_option("--machine", o.machine,
		       "parameters (default: mi300x.toml, "
		       "built in)");
	app.require_subcommand(1);
	app.add_subcommand("tables", "beside what others have published")
		->callback([&o] { tables(o); });
	auto *r = app.add_subcommand("replay", "what the emulator recorded");
	r->add_option("FILE", o.files, "\"timeline dump\" of each GPU")->required();
	r->add_option("--trace", o.trace, "write Chrome trace JSON here");
	r->callback([&o] { replay(o); });
	add_collective(app, o);
	app.add_subcommand("plot", "as SVG: speed-ups by size, predicted and published")
		->callback([&o] { std::cout << speedup_plot(o.read().machine); });
	app.add_subcommand("regret", "what is chosen automatically, beside the best")
		->callback([&o] { std::cout << regret_table(o.read().machine); });
	app.add_subcommand("parameters", "with their sources")->callback([&o] {
		std::cout << parameters_table(o.read());
	});
	app.add_subcommand("fit", "find the fitted parameters again")->callback([&o] {
		print_fit(o);
	});
}

} // namespace

int main(int argc, char **argv)
{
	CLI::App app("Virtual time of what SDMA engines execute. All its figures are "
		     "those of a model.",
		     "sluice-model");
	Options o;

	add_commands(app, o);
	try {
		app.parse(argc, argv);
	} catch (const CLI::ParseError &e) {
		return app.exit(e);
	} catch (const std::exception &e) {
		std::fprintf(stderr, "sluice-model: %s\n", e.what());
		return 1;
	}
	return std::cout.flush() ? 0 : 1;
}
