// SPDX-License-Identifier: MIT
// sluice run: runs another program with libsluice-preload.so preloaded.
#include <cstdlib>
#include <filesystem>
#include <format>
#include <string>
#include <unistd.h>

#include "../preload/preload.hpp"
#include "child.hpp"
#include "command.hpp"
#include "gpu_memory.hpp"
#include "try.hpp"

namespace sluice::cli {

namespace {

class run_command : public command {
public:
	void add_options(CLI::App &to) override;
	std::vector<std::string> *program() override { return &words_; }
	result<exit_status> run(const settings &with) override;

private:
	result<void> set_up() const;

	std::vector<std::string> words_;
	bool device_memory_ = false, report_ = false;
	std::string gpu_ = "0";
	uint64_t min_ = 64 << 10;
};

/// Where it is installed, or else where it was built.
result<std::string> find_preload()
{
	std::error_code none;
	auto here = std::filesystem::read_symlink("/proc/self/exe", none).parent_path();

	for (const char *directory : {"../" SLUICE_LIBDIR "/sluice", "../preload"}) {
		auto file = here / directory / "libsluice-preload.so";
		if (std::filesystem::exists(file, none))
			return std::filesystem::weakly_canonical(file).string();
	}
	return fail(errc::input, "libsluice-preload.so",
		    "it is not installed with this program, " + here.string());
}

/// The loader splits LD_PRELOAD at these characters, which cannot be quoted.
result<void> check_path(const std::string &file)
{
	size_t at = file.find_first_of(" :");

	if (at == std::string::npos)
		return {};
	return fail(
		errc::usage, file,
		std::format("there is a {} in its path, at which LD_PRELOAD would be "
			    "split: move it to another directory",
			    file[at] == ' ' ? "space" : "colon"));
}

void put(const char *variable, const std::string &value)
{
	::setenv(variable, value.c_str(), 1);
}

// What would go wrong in each process of the program is reported once, in advance.
result<void> run_command::set_up() const
{
	SLUICE_TRY(std::string file, find_preload());
	SLUICE_CHECK(check_path(file));
	SLUICE_TRY(detail::gpu_node * node, detail::find_node(gpu_));
	SLUICE_CHECK(detail::can_share(*node));
	const char *others = std::getenv("LD_PRELOAD");

	put("LD_PRELOAD", others && *others ? file + ":" + others : file);
	put(preload::gpu, node->name());
	put(preload::min, std::to_string(min_));
	if (report_)
		put(preload::report, "1");
	return {};
}

void run_command::add_options(CLI::App &to)
{
	to.usage("Usage: sluice run --device-memory [OPTIONS] -- COMMAND...");
	to.add_option("COMMAND", words_, "the program and its arguments");
	to.add_flag(
		  "--device-memory", device_memory_,
		  "move to a GPU the memory that the program registers on demand with "
		  "an RDMA device")
		->required();
	to.add_option("--gpu", gpu_, "the GPU: 0000:03:00.0, or 0")
		->type_name("GPU")
		->capture_default_str();
	to.add_option("--min", min_, "smaller registrations stay where they are")
		->type_name("SIZE")
		->transform(CLI::AsSizeValue(false))
		->capture_default_str();
	to.add_flag("--report", report_,
		    "each process tells at its end what was moved, on standard error");
}

result<exit_status> run_command::run(const settings &with)
{
	if (with.json)
		return fail(errc::usage, "--json",
			    "the output is that of the program, which run becomes");
	if (words_.empty())
		return fail(errc::usage, "COMMAND", "name a program");
	SLUICE_CHECK(set_up());
	return std::unexpected(become(words_));
}

} // namespace

std::unique_ptr<command> make_run()
{
	return std::make_unique<run_command>();
}

} // namespace sluice::cli
