// SPDX-License-Identifier: MIT
// sluice bench: measures what this machine, or two machines, can do.
#include "bench.hpp"

#include "command.hpp"
#include "json_text.hpp"
#include "part_file.hpp"
#include "svg_plot.hpp"
#include "token.hpp"
#include "try.hpp"

namespace sluice::cli {

namespace {

constexpr const char *usage_text =
	"Usage: sluice bench [OPTIONS] --listen\n"
	"  or:  sluice bench [OPTIONS] HOST\n"
	"  or:  sluice bench [OPTIONS] --from host|gpu|svm|FILE --to ...\n"
	"  or:  sluice bench [OPTIONS] --collective OPERATION";

result<void> check_mode(const bench_options &o)
{
	bool local = !o.from.empty() || !o.to.empty();

	if (o.listen + !o.host.empty() + local + !o.collective.empty() > 1)
		return fail(errc::usage, "arguments",
			    "a HOST, --listen, --from with --to, and --collective "
			    "exclude each other");
	if (o.collective.empty() && (!o.variant.empty() || o.prelaunch))
		return fail(errc::usage, "--variant, --prelaunch",
			    "they want --collective");
	if (o.perftest && o.host.empty())
		return fail(errc::usage, "--perftest", "it wants a HOST");
	return {};
}

result<void> check_lengths(const bench_options &o)
{
	for (uint64_t size : o.sizes)
		if (o.direct && size % page_size)
			return fail(errc::usage, "--sizes",
				    "--direct wants whole pages of 4K");
	return {};
}

class bench : public command {
public:
	void add_options(CLI::App &to) override;
	result<exit_status> run(const settings &with) override;

private:
	void add_peer_options(CLI::App &to);
	void add_local_options(CLI::App &to);
	void add_group_options(CLI::App &to);
	void add_measure_options(CLI::App &to);
	result<exit_status> tell(const settings &with, const figures &all) const;

	bench_options options_;
	std::string sizes_ = "4K..16M", token_file_;
};

void bench::add_options(CLI::App &to)
{
	to.usage(usage_text);
	add_peer_options(to);
	add_local_options(to);
	add_group_options(to);
	add_measure_options(to);
}

void bench::add_peer_options(CLI::App &to)
{
	to.add_option("HOST", options_.host, "the listening side");
	to.add_flag("--listen", options_.listen, "be the listening side, once");
	to.add_option("--address", options_.address,
		      "where to listen; default: everywhere")
		->type_name("ADDRESS");
	to.add_option("--nic", options_.nic, "RDMA device; default: the only one")
		->type_name("NIC");
	to.add_option("--port", options_.port,
		      "port of the listening side; ib_write_bw takes the next one")
		->check(CLI::Range(1, 65534))
		->capture_default_str();
	to.add_option("--token-file", token_file_,
		      "its first line is the token, which both sides must have")
		->type_name("FILE");
	to.add_option(
		  "--memory", options_.memory,
		  "memory of this side: host, gpu (allocated there) or svm (shared, "
		  "in video memory)")
		->check(CLI::IsMember({"host", "gpu", "svm"}))
		->capture_default_str();
	to.add_option("--operation", options_.operation, "RDMA write or read")
		->check(CLI::IsMember({"write", "read"}))
		->capture_default_str();
	to.add_flag("--perftest", options_.perftest,
		    "also run ib_write_bw on host memory, and print the ratio");
	to.add_option(
		  "--timeout", options_.timeout_s,
		  "wait so many seconds for the peer; one that is silent for a third of "
		  "that, but at least 10 seconds, is lost")
		->check(CLI::Range(1, 86400))
		->capture_default_str();
}

void bench::add_local_options(CLI::App &to)
{
	to.add_option("--gpu", options_.gpu, "0000:03:00.0, or 0; default: the first")
		->type_name("GPU");
	to.add_option("--from", options_.from, "where from: host, gpu, svm or a file")
		->type_name("PLACE");
	to.add_option("--to", options_.to, "where to: host, gpu, svm or a file")
		->type_name("PLACE");
	to.add_option("--gather", options_.gather,
		      "bring this many scattered blocks together, by one batch and by "
		      "a copy each; one set of blocks after the other")
		->check(CLI::Range(1, 512));
	to.add_flag("--direct", options_.direct, "bypass the page cache (O_DIRECT)");
	to.add_flag("--overwrite", options_.overwrite, "replace the file of --to");
}

void bench::add_group_options(CLI::App &to)
{
	to.add_option(
		  "--collective", options_.collective,
		  "measure this one on all GPUs of this machine, 8 at most, by their "
		  "SDMA engines; --sizes are of a block")
		->check(CLI::IsMember({"all_gather", "all_to_all", "broadcast",
				       "gather", "scatter"}));
	to.add_option("--variant", options_.variant,
		      "variant of the collective; default: all that it has")
		->check(CLI::IsMember({"pcpy", "bcst", "swap", "b2b"}));
	to.add_flag("--prelaunch", options_.prelaunch,
		    "have the engines wait until a store lets the collective begin");
}

void bench::add_measure_options(CLI::App &to)
{
	to.add_option("--sizes", sizes_,
		      "bytes of an operation: 4K..16M (each four times the one before) "
		      "or 4K,1M")
		->type_name("SIZES")
		->capture_default_str();
	to.add_option("--total", options_.total, "bytes to move in each round")
		->transform(CLI::AsSizeValue(false))
		->capture_default_str();
	to.add_option("--rounds", options_.rounds, "rounds of throughput")
		->check(CLI::Range(1, 1000))
		->capture_default_str();
	to.add_option("--samples", options_.samples,
		      "time so many single operations at most; fewer of large ones")
		->check(CLI::Range(1, 1000000))
		->capture_default_str();
	to.add_option("--depth", options_.depth, "operations under way at once")
		->check(CLI::Range(1, 512))
		->capture_default_str();
	to.add_option("--note", options_.note, "print this remark with the results")
		->type_name("WORDS");
	to.add_option("--plot", options_.plot, "write a plot to this file, as SVG")
		->type_name("FILE");
}

result<exit_status> bench::tell(const settings &with, const figures &all) const
{
	if (!options_.plot.empty()) {
		std::ofstream file(options_.plot);
		if (!(file << svg_of(all)).flush())
			return fail_errno(options_.plot, "plot", errno, errc::output);
	}
	*with.out << (with.json ? json_text(figures_json(all)) : figures_text(all));
	return exit_status::ok;
}

result<exit_status> bench::run(const settings &with)
{
	SLUICE_TRY(options_.sizes, parse_sizes(sizes_));
	SLUICE_CHECK(check_mode(options_));
	SLUICE_CHECK(check_lengths(options_));
	for (const std::string &read :
	     {is_memory(options_.from) ? "" : options_.from, token_file_})
		if (is_same_file(read, options_.plot))
			return fail(errc::usage, "--plot", "it would replace " + read);
	if (!options_.plot.empty())
		SLUICE_CHECK(can_be_written(options_.plot));
	if (!token_file_.empty()) {
		SLUICE_TRY(options_.token, read_token(token_file_));
	}
	if (options_.listen) {
		SLUICE_CHECK(bench_listen(options_));
		if (with.json)
			*with.out << json_text(nlohmann::ordered_json::object());
		return exit_status::ok;
	}
	SLUICE_TRY(auto all, !options_.collective.empty() ? bench_group(options_)
			     : options_.host.empty()	  ? bench_local(options_)
							  : bench_connect(options_));
	return tell(with, all);
}

} // namespace

std::unique_ptr<command> make_bench()
{
	return std::make_unique<bench>();
}

} // namespace sluice::cli
