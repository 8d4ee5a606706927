// SPDX-License-Identifier: MIT
// sluice top: the current users of the GPUs, and the traffic of the cards.
#include "top.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <format>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "command.hpp"
#include "figures.hpp"
#include "json_text.hpp"
#include "sluice/unique_fd.hpp"
#include "text.hpp"

namespace sluice::cli {

namespace {

using rows = std::vector<std::vector<std::string>>;

std::string count_text(double n)
{
	constexpr std::array units = {"", "k", "M", "G", "T"};
	size_t unit = 0;

	while (n >= 1000 && unit + 1 < units.size()) {
		n /= 1000;
		unit++;
	}
	return std::format("{:.3g}{}", n, units[unit]);
}

std::string or_dash(const std::optional<double> &n)
{
	return n ? count_text(*n) : "-";
}

std::string percent(const gpu_rates &of, const char *engine)
{
	auto found = of.busy.find(engine);

	return found == of.busy.end() ? "-"
				      : std::format("{:.0f}", found->second * 100);
}

std::string gpu_table(const usage_rates &of)
{
	rows table{{"pid", "command", "gpu", "batches/s", "B/s", "dma %", "W", "vram"}};

	for (const gpu_rates &r : of.gpus)
		table.push_back({std::to_string(r.pid), r.command.substr(0, 15), r.gpu,
				 or_dash(r.batches), or_dash(r.batch_bytes),
				 percent(r, "dma"), or_dash(r.copy_watts),
				 size_text(r.vram)});
	if (of.gpus.empty())
		return "  no process that may be seen has a GPU of amdgpu open\n";
	return aligned(table);
}

/// Traffic always, others only if they change: most count errors that do not happen.
bool told(const nic_rate &r)
{
	return r.a_second > 0 || r.counter == "sent_bytes" ||
	       r.counter == "rcvd_bytes" || r.counter == "port_xmit_data" ||
	       r.counter == "port_rcv_data";
}

std::string nic_table(const usage_rates &of)
{
	rows table{{"nic", "counter", "a second", "in all"}};

	for (const nic_rate &r : of.nics)
		if (told(r))
			table.push_back({r.nic, r.counter, count_text(r.a_second),
					 std::to_string(r.total)});
	if (table.size() == 1)
		return "  no card counts anything\n";
	return aligned(table);
}

std::string watts(double joules, double seconds)
{
	return std::format("{:.1f}", joules / seconds);
}

std::string power_table(const usage_rates &of)
{
	rows table{{"gpu", "XCD W", "AID W", "HBM W", "socket W", "of ms", "+- %",
		    "J/GB"}};
	std::string why;

	for (const gpu_power &p : of.power) {
		const energy_used &e = p.used;

		table.push_back({p.gpu, watts(e.xcd, e.seconds),
				 watts(e.aid, e.seconds), watts(e.hbm, e.seconds),
				 watts(e.socket, e.seconds),
				 std::format("{:.1f}", e.seconds * 1e3),
				 std::format("{:.2g}", e.uncertainty * 100),
				 or_dash(p.joules_per_gb)});
	}
	for (const std::string &reason : of.no_energy)
		why += hanging("  ", reason);
	return (table.size() > 1 ? aligned(table) : "") + why;
}

constexpr const char *power_note =
	"W of a process: its share of the power of AIDs, by the busy time of SDMA engines, "
	"and of HBM, by batch bytes. J/GB: energy of both for all batch bytes. Idling and "
	"other work are included. NOT verified on hardware.";

class top : public command {
public:
	void add_options(CLI::App &to) override;
	result<exit_status> run(const settings &with) override;

private:
	void show(const settings &with, const usage_rates &of) const;

	double interval_ = 1;
	bool once_ = false;
	unsigned count_ = 0;
};

void top::add_options(CLI::App &to)
{
	to.add_flag("--once", once_, "look for one interval, print, and end");
	to.add_option("--interval", interval_, "seconds between two tables")
		->check(CLI::Range(0.01, 3600.0))
		->capture_default_str();
	to.add_option("--count", count_, "end after this many tables")
		->check(CLI::Range(1, 1000000));
}

void top::show(const settings &with, const usage_rates &of) const
{
	if (with.json) {
		*with.out << json_text(top_json(of));
		return;
	}
	// Cursor home, then clear below it: no flicker.
	if (!once_ && ::isatty(STDOUT_FILENO))
		*with.out << "\033[H\033[J";
	*with.out << top_text(of) << std::flush;
}

// With --json there is one document, for one interval. A signal ends a list without an end
// well.
result<exit_status> top::run(const settings &with)
{
	unsigned left = once_ || with.json ? 1 : count_;
	sigset_t set;

	::sigemptyset(&set);
	::sigaddset(&set, SIGINT);
	::sigaddset(&set, SIGTERM);
	::sigprocmask(SIG_BLOCK, &set, nullptr);
	unique_fd asked(::signalfd(-1, &set, SFD_CLOEXEC));
	pollfd end{asked.get(), POLLIN, 0};
	usage before = read_usage(with.root);
	while (*with.out && ::poll(&end, 1, static_cast<int>(interval_ * 1000)) == 0) {
		usage now = read_usage(with.root);

		show(with, rates_between(before, now));
		before = std::move(now);
		if (left && --left == 0)
			return exit_status::ok;
	}
	if (left && *with.out)
		return fail(errc::cancelled, "top", "a signal ended it");
	return exit_status::ok;
}

} // namespace

std::string top_text(const usage_rates &of)
{
	std::string all = std::format("GPUs, over {:.2f} s\n{}\nNICs\n{}", of.seconds,
				      gpu_table(of), nic_table(of));

	if (auto power = power_table(of); !power.empty())
		all += "\nPower\n" + power;
	return of.power.empty() ? all : all + hanging("  ", power_note);
}

nlohmann::ordered_json top_json(const usage_rates &of)
{
	using json = nlohmann::ordered_json;
	json gpus = json::array(), nics = json::array(), power = json::array();
	auto or_null = [](const std::optional<double> &n) {
		return n ? json(*n) : json();
	};

	for (const gpu_rates &r : of.gpus)
		gpus.push_back({{"pid", r.pid},
				{"command", r.command},
				{"gpu", r.gpu},
				{"batches_per_s", or_null(r.batches)},
				{"batch_bytes_per_s", or_null(r.batch_bytes)},
				{"copy_watts_at_most", or_null(r.copy_watts)},
				{"engines_busy", r.busy},
				{"vram_bytes", r.vram},
				{"gtt_bytes", r.gtt}});
	for (const nic_rate &r : of.nics)
		nics.push_back({{"nic", r.nic},
				{"counter", r.counter},
				{"per_s", r.a_second},
				{"total", r.total}});
	for (const gpu_power &p : of.power) {
		json row{{"gpu", p.gpu}};

		row.update(energy_json(p.used));
		row["joules_per_gb"] = or_null(p.joules_per_gb);
		power.push_back(std::move(row));
	}
	return {{"seconds", of.seconds},
		{"gpus", std::move(gpus)},
		{"nics", std::move(nics)},
		{"power", std::move(power)},
		{"no_energy", of.no_energy}};
}

std::unique_ptr<command> make_top()
{
	return std::make_unique<top>();
}

} // namespace sluice::cli
