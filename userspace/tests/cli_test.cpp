// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <format>
#include <fstream>
#include <set>
#include <sstream>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "child.hpp"
#include "command_line.hpp"
#include "doctor.hpp"
#include "env.hpp"
#include "exit_status.hpp"
#include "fake_machine.hpp"
#include "part_file.hpp"
#include "program.hpp"
#include "token.hpp"

using namespace sluice;
using namespace sluice::cli;
using nlohmann::json;

namespace {

struct CommandLineTest : ::testing::Test {
	/// Runs on the machine made of files.
	int run(std::vector<const char *> words)
	{
		words.insert(words.begin(), {"sluice", "--sysroot", root.c_str()});
		out.str("");
		err.str("");
		int status = run_program(static_cast<int>(words.size()), words.data(),
					 out, err);
		widths(out.str());
		widths(err.str());
		return status;
	}

	void widths(const std::string &text)
	{
		std::istringstream lines(text);

		for (std::string line; std::getline(lines, line);)
			EXPECT_TRUE(line.size() <= 80 || text.starts_with("{")) << line;
	}

	json parsed() { return json::parse(out.str(), nullptr, false); }

	/// Two sockets, each with a switch that has a GPU, a NIC and a disk below it.
	void two_sockets()
	{
		machine.patched_kernel();
		machine.cpu("AuthenticAMD", 25);
		machine.node(0, "0-31", "10 32");
		machine.node(1, "32-63", "32 10");
		for (int n : {0, 1}) {
			std::string up = std::format("pci0000:{0}0/0000:{0}0:01.0/"
						     "0000:{0}1:00.0/",
						     n);
			machine.gpu(
				std::format("{}0000:{}2:00.0/0000:{}3:00.0", up, n, n),
				128 + n, n);
			machine.nic(
				std::format("{}0000:{}2:01.0/0000:{}4:00.0", up, n, n),
				std::format("mlx5_{}", n), n);
			machine.kfd(n + 1, 100 + n, 0x300 + 0x1000 * n);
			machine.disk(std::format("pci0000:{0}0/0000:{0}0:02.0/"
						 "0000:{0}5:00.0",
						 n),
				     std::format("nvme{}n1", n), n);
		}
		machine.file("sys/kernel/mm/transparent_hugepage/enabled",
			     "always [madvise] never\n");
		machine.file("proc/sys/kernel/numa_balancing", "0\n");
	}

	std::string verdict_of(std::string_view name)
	{
		json all = parsed();

		for (const json &check : all["checks"])
			if (check["check"] == name)
				return check["verdict"];
		return "none";
	}

	fake_machine machine;
	std::string root = machine.root();
	std::ostringstream out, err;
};

/// A machine where all is well, as far as it can be asked.
facts well(const fake_machine &machine)
{
	facts of;

	of.machine = *topology::read(machine.root());
	of.gpus.resize(of.machine.gpus().size());
	of.nics.resize(of.machine.nics().size());
	of.uring_errno = of.kfd_errno = 0;
	of.xnack = true;
	of.memlock = 64 << 10;
	of.huge_pages = "always";
	of.numa_balancing = 0;
	for (auto &g : of.gpus) {
		g.open_errno = 0;
		g.batch = {.ops = 0xff,
			   .engine_mask = 3,
			   .max_descs = 4096,
			   .max_bytes = 1ull << 32};
	}
	for (auto &n : of.nics) {
		n.open_errno = 0;
		n.on_demand = n.dmabuf = true;
	}
	return of;
}

checks all_of(const facts &of)
{
	checks all;

	check_host(of, all);
	check_gpus(of, all);
	check_nics(of, all);
	check_paths(of, all);
	check_libraries(of, all);
	return all;
}

check find(const facts &of, std::string_view name)
{
	auto all = all_of(of);
	auto found = std::ranges::find(all, name, &check::name);

	return found == all.end() ? check{.name = "none"} : *found;
}

} // namespace

TEST_F(CommandLineTest, EveryErrorHasAStatusOfItsOwnAndARemedy)
{
	std::set<exit_status> seen;

	for (int i = 0; i <= static_cast<int>(errc::corrupt); i++) {
		auto code = static_cast<errc>(i);

		EXPECT_TRUE(seen.insert(cli::status_of(code)).second)
			<< sluice::name(code);
		EXPECT_NE(cli::status_of(code), exit_status::ok);
		EXPECT_STRNE(cli::remedy_of(code), "");
		EXPECT_NE(exit_status_text().find(std::format(
				  "{:2}  {} ", static_cast<int>(cli::status_of(code)),
				  sluice::name(code))),
			  std::string::npos)
			<< sluice::name(code);
	}
}

TEST_F(CommandLineTest, HelpAndVersion)
{
	EXPECT_EQ(run({"--version"}), 0);
	EXPECT_EQ(out.str(), "sluice 0.1\n");
	EXPECT_EQ(run({"--help"}), 0);
	EXPECT_NE(out.str().find(exit_status_text()), std::string::npos);
	EXPECT_NE(out.str().find("doctor"), std::string::npos);
	EXPECT_EQ(out.str().find("sysroot"), std::string::npos);
	EXPECT_EQ(run({"info", "--help"}), 0);
	EXPECT_NE(out.str().find("A B"), std::string::npos);
}

TEST_F(CommandLineTest, BadArgumentsAreNamed)
{
	EXPECT_EQ(run({}), 2);
	for (const char *name : {" info", " send", " recv", " doctor"})
		EXPECT_NE(err.str().find(name), std::string::npos) << name;
	EXPECT_EQ(run({"--frobnicate"}), 2);
	EXPECT_NE(err.str().find("--frobnicate"), std::string::npos);
	EXPECT_EQ(run({"frobnicate"}), 2);
	EXPECT_EQ(run({"info", "node0"}), 2);
	EXPECT_EQ(run({"info", "node0", "node0", "node0"}), 2);
	EXPECT_EQ(run({"doctor", "gpu0"}), 2);
	EXPECT_TRUE(out.str().empty());
}

TEST_F(CommandLineTest, AWordInBracketsIsNoList)
{
	EXPECT_EQ(run({"send", "[a,b]", "--to", "nowhere"}), 2);
	EXPECT_NE(err.str().find("./[a,b]"), std::string::npos) << err.str();
	// Those of another program are passed on, and only the GPU is not there.
	EXPECT_EQ(run({"run", "--device-memory", "--gpu", "ffff:ff:1f.7", "--", "true",
		       "[a,b]", "[]", "{}"}),
		  4)
		<< err.str();
}

namespace {

/// What `sluice` gives to the program that it runs.
std::vector<std::string> program_of(std::vector<std::string> words)
{
	settings common;
	command_line line(common);

	line.parse(std::move(words));
	return *line.chosen()->program();
}

} // namespace

TEST(Program, HasAllWordsFromItsNameOn)
{
	const std::vector<std::string> whole = {"mpirun", "-n",	  "2",	"--json",
						"--",	  "prog", "--", "[a,b]"};
	auto with = [&](std::vector<std::string> ours) {
		ours.insert(ours.end(), whole.begin(), whole.end());
		return program_of(std::move(ours));
	};

	EXPECT_EQ(with({"run", "--device-memory"}), whole);
	EXPECT_EQ(with({"run", "--device-memory", "--"}), whole);
	EXPECT_EQ(with({"--json", "run", "--gpu", "1", "--min=4K", "--report",
			"--device-memory"}),
		  whole);
	EXPECT_EQ(with({"trace", "--sysroot", "run", "--out", "x", "--"}), whole);
	EXPECT_EQ(with({"trace", "--out", "--"}), whole); // a file of this name
	EXPECT_EQ(program_of({"trace", "--", "merge", "a"}),
		  (std::vector<std::string>{"merge", "a"}));
	EXPECT_TRUE(program_of({"trace", "--out", "x"}).empty());
	EXPECT_TRUE(program_of({"trace", "merge", "a", "b", "--out", "x"}).empty());
	EXPECT_THROW(program_of({"run", "mpirun", "--device-memory"}), CLI::ParseError);
}

TEST_F(CommandLineTest, AMistakeIsADocumentToo)
{
	EXPECT_EQ(run({"send", "file", "--to", "nowhere", "--json", "--port"}), 2);
	EXPECT_EQ(parsed()["error"]["code"], "usage") << out.str();
	EXPECT_EQ(run({"run", "--device-memory", "--json", "--", "true"}), 2);
	EXPECT_EQ(run({"kv", "recv", "--to", "nowhere"}), 2);
	EXPECT_EQ(run({"kv", "send", "--to", "nowhere", "--listen", "here"}), 2);
	EXPECT_EQ(run({"recv", "/no/such/directory/"}), 9);
	EXPECT_NE(err.str().find("/no/such/directory"), std::string::npos);
}

TEST_F(CommandLineTest, ErrorsNameTheThingTheLimitAndTheRemedy)
{
	EXPECT_EQ(run({"info", "node0", "gpu7"}), 4);
	EXPECT_TRUE(err.str().starts_with("sluice: gpu7: ")) << err.str();
	EXPECT_NE(err.str().find("there is node0"), std::string::npos);
	EXPECT_NE(err.str().find("  try: sluice info"), std::string::npos);
	EXPECT_TRUE(out.str().empty());

	EXPECT_EQ(run({"info", "node0", "gpu7", "--json"}), 4);
	json what = parsed()["error"];
	EXPECT_EQ(what["code"], "device");
	EXPECT_EQ(what["where"], "gpu7");
	EXPECT_EQ(what["exit_status"], 4);
	EXPECT_FALSE(what["remedy"].empty());
	root = "/nowhere";
	EXPECT_EQ(run({"info"}), 1);
	EXPECT_EQ(run({"doctor"}), 1);
}

TEST_F(CommandLineTest, OutputThatIsLostIsAnError)
{
	const char *words[] = {"sluice", "--sysroot", root.c_str(), "info"};
	std::ostream broken(nullptr);

	EXPECT_EQ(run_program(4, words, broken, err), 9);
}

TEST_F(CommandLineTest, TextThatGoesNowhereIsAnError)
{
	std::ostream broken(nullptr);

	for (const char *word : {"--help", "--version"}) {
		const char *words[] = {"sluice", word};

		EXPECT_EQ(run_program(2, words, broken, err), 9) << word;
	}
	// A list without an end ends if nobody reads it.
	const char *words[] = {"sluice", "top", "--interval", "0.01"};
	EXPECT_EQ(run_program(4, words, broken, err), 9);
}

TEST_F(CommandLineTest, ASignalLeavesTopWithoutItsDocument)
{
	sigset_t set, before;
	int number = 0;

	::sigemptyset(&set);
	::sigaddset(&set, SIGTERM);
	::pthread_sigmask(SIG_BLOCK, &set, &before);
	::raise(SIGTERM);
	EXPECT_EQ(run({"top", "--json"}), 16);
	::sigwait(&set, &number);
	::raise(SIGTERM);
	EXPECT_EQ(run({"top"}), 0);
	::sigwait(&set, &number);
	::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

namespace {

/// A directory with the file "from".
struct CopyTest : CommandLineTest {
	void SetUp() override
	{
		ASSERT_TRUE(::mkdtemp(at));
		write("from", "what is copied");
	}
	void TearDown() override { std::filesystem::remove_all(at); }

	std::string path(const char *name) { return std::string(at) + "/" + name; }
	void write(const char *name, const char *text)
	{
		std::ofstream(path(name)) << text;
	}
	std::string text_of(const char *name)
	{
		std::ifstream file(path(name));

		return {std::istreambuf_iterator<char>(file), {}};
	}
	int copy(const char *to)
	{
		return run({"copy", "--quiet", path("from").c_str(), path(to).c_str()});
	}

	char at[16] = "/tmp/copyXXXXXX";
};

} // namespace

TEST_F(CopyTest, APathThatCannotBeLookedAtIsAnError)
{
	// Root may look anywhere, but cannot follow a link to itself.
	std::filesystem::create_symlink("loop", path("loop"));
	EXPECT_EQ(copy("loop"), 9);
	EXPECT_NE(err.str().find("/loop: "), std::string::npos) << err.str();
}

TEST_F(CopyTest, ALinkWithTheNameOfThePartIsNotFollowed)
{
	write("other", "somebody's");
	std::filesystem::create_symlink("other", path("to.part"));
	EXPECT_EQ(copy("to"), 9);
	EXPECT_EQ(text_of("other"), "somebody's");
	EXPECT_FALSE(open_part(path("to.part"), 0600));
	std::filesystem::remove(path("to.part"));
	EXPECT_EQ(copy("to"), 0) << err.str();
	EXPECT_EQ(text_of("to"), "what is copied");
}

// It may be the file that is copied.
TEST_F(CopyTest, WhatHasTheNameOfThePartIsKept)
{
	write("to.part", "somebody's");
	EXPECT_EQ(copy("to"), 9);
	EXPECT_NE(err.str().find("/to.part: "), std::string::npos) << err.str();
	EXPECT_EQ(text_of("to.part"), "somebody's");
	EXPECT_EQ(run({"copy", "--quiet", path("to.part").c_str(), path("to").c_str()}),
		  9);
	EXPECT_EQ(text_of("to.part"), "somebody's");
	EXPECT_EQ(text_of("to"), "");
}

TEST_F(CopyTest, NothingIsMadeBeforeAllIsThere)
{
	write("to.part", "somebody's");
	EXPECT_EQ(run({"copy", "--gpu", "7", path("from").c_str(), path("to").c_str()}),
		  4);
	EXPECT_EQ(text_of("to.part"), "somebody's");
}

TEST_F(CopyTest, APartBelongsToOneProcessAtATime)
{
	auto first = open_part(path("to.part"), 0600);
	ASSERT_TRUE(first) << first.error().message();
	auto second = open_part(path("to.part"), 0600);
	ASSERT_FALSE(second);
	EXPECT_NE(second.error().message().find("another process"),
		  std::string_view::npos);
	// Another process may have been about to open it when it was renamed.
	EXPECT_TRUE(put_in_place(first->get(), path("to.part"), path("to"), false));
	std::filesystem::create_hard_link(path("to"), path("to.part"));
	*first = {};
	EXPECT_FALSE(open_part(path("to.part"), 0600));
	EXPECT_EQ(text_of("to"), "");
}

TEST_F(CopyTest, RightsAreThoseOfTheFile)
{
	using std::filesystem::perms;
	auto rights = [this](const char *name) {
		return std::filesystem::status(path(name)).permissions();
	};
	const auto mine = perms::owner_read | perms::owner_write;

	std::filesystem::permissions(path("from"), mine);
	EXPECT_EQ(copy("to"), 0) << err.str();
	EXPECT_EQ(rights("to"), mine);
	// A file that is replaced keeps its rights.
	std::filesystem::permissions(path("from"), mine | perms::others_read);
	EXPECT_EQ(run({"copy", "--quiet", "--overwrite", path("from").c_str(),
		       path("to").c_str()}),
		  0);
	EXPECT_EQ(rights("to"), mine);
	// The umask takes what it takes of each new file.
	const mode_t before = ::umask(022);
	std::filesystem::permissions(path("from"), perms(0775));
	EXPECT_EQ(copy("program"), 0) << err.str();
	::umask(before);
	EXPECT_EQ(rights("program"), perms(0755));
}

namespace {

/// As Linux has it: the owner, a user, the group, the mask, others.
struct access_list {
	static constexpr const char *name = "system.posix_acl_access";
	static constexpr const char *of_new = "system.posix_acl_default";

	struct entry {
		uint16_t kind, rights;
		uint32_t id;
	};
	uint32_t version = 2;
	entry all[5] = {{1, 6, ~0u},
			{2, 6, 65534},
			{4, 0, ~0u},
			{16, 6, ~0u},
			{32, 0, ~0u}};
};

} // namespace

TEST_F(CopyTest, AFileThatIsReplacedKeepsItsAccessList)
{
	const access_list list;
	std::array<char, sizeof(list)> now;

	write("to", "somebody's");
	if (::setxattr(path("to").c_str(), list.name, &list, sizeof(list), 0) < 0)
		GTEST_SKIP() << "no access lists here";
	EXPECT_EQ(run({"copy", "--quiet", "--overwrite", path("from").c_str(),
		       path("to").c_str()}),
		  0);
	ASSERT_EQ(::getxattr(path("to").c_str(), list.name, now.data(), now.size()),
		  std::ssize(now));
	EXPECT_EQ(std::memcmp(now.data(), &list, sizeof(list)), 0);
}

TEST_F(CopyTest, AFileThatIsReplacedInheritsNoAccessList)
{
	const access_list list;
	struct stat st{};

	write("to", "somebody's");
	::chmod(path("to").c_str(), 0640);
	if (::setxattr(at, list.of_new, &list, sizeof(list), 0) < 0)
		GTEST_SKIP() << "no access lists here";
	EXPECT_EQ(run({"copy", "--quiet", "--overwrite", path("from").c_str(),
		       path("to").c_str()}),
		  0);
	EXPECT_EQ(text_of("to"), "what is copied");
	EXPECT_LT(::getxattr(path("to").c_str(), list.name, nullptr, 0), 0);
	::stat(path("to").c_str(), &st);
	EXPECT_EQ(st.st_mode & 0777, 0640u);
	// A new file does.
	EXPECT_EQ(copy("new"), 0);
	EXPECT_GT(::getxattr(path("new").c_str(), list.name, nullptr, 0), 0);
}

TEST_F(CopyTest, APartThatIsToReplaceAFileIsForItsOwnerAlone)
{
	auto rights = [this] {
		struct stat st{};

		::stat(path("to.part").c_str(), &st);
		return st.st_mode & 0777;
	};

	write("to.part", "the beginning");
	::chmod(path("to.part").c_str(), 0644);
	EXPECT_TRUE(open_part(path("to.part"), rights_of_part(path("to"), 0666)));
	EXPECT_EQ(rights(), 0644u);
	write("to", "somebody's");
	EXPECT_TRUE(open_part(path("to.part"), rights_of_part(path("to"), 0666)));
	EXPECT_EQ(rights(), 0600u);
	EXPECT_EQ(text_of("to.part"), "the beginning");
}

TEST_F(CopyTest, AFileThatIsReplacedKeepsItsOwner)
{
	if (::geteuid() != 0)
		GTEST_SKIP() << "only root gives files away";
	write("to", "somebody's");
	ASSERT_EQ(::chown(path("to").c_str(), 65534, 65534), 0);
	EXPECT_EQ(run({"copy", "--quiet", "--overwrite", path("from").c_str(),
		       path("to").c_str()}),
		  0);
	struct stat st{};
	::stat(path("to").c_str(), &st);
	EXPECT_EQ(st.st_uid, 65534u);
	EXPECT_EQ(st.st_gid, 65534u);
}

// A left-over part does not block a second attempt. The signal comes as soon as the file is
// there, which is before the process can know that it owns the file.
TEST_F(CopyTest, ACopyThatASignalEndsLeavesNothing)
{
	const std::string part = path("to.part");

	write("from", std::string(4 << 20, 'x').c_str());
	for (int round = 0; round < 30; round++) {
		std::filesystem::remove(path("to"));
		pid_t copying = ::fork();
		if (copying == 0)
			::_exit(copy("to"));
		int status = 0;
		pid_t ended = 0;
		while (::access(part.c_str(), F_OK) < 0 && !ended)
			ended = ::waitpid(copying, &status, WNOHANG);
		::kill(copying, SIGTERM);
		if (!ended)
			::waitpid(copying, &status, 0);
		EXPECT_FALSE(std::filesystem::exists(part)) << "round " << round;
		EXPECT_TRUE(WIFSIGNALED(status) || std::filesystem::exists(path("to")));
	}
}

TEST_F(CopyTest, OnlyFilesAreReplaced)
{
	ASSERT_EQ(::mkfifo(path("to").c_str(), 0600), 0);
	EXPECT_EQ(run({"copy", "--quiet", "--overwrite", path("from").c_str(),
		       path("to").c_str()}),
		  9);
	EXPECT_TRUE(std::filesystem::is_fifo(path("to")));
}

// The link would be, and not what it leads to.
TEST_F(CopyTest, LinksAreNotReplaced)
{
	write("other", "somebody's");
	std::filesystem::create_symlink("other", path("to"));
	std::filesystem::create_symlink("none", path("dangling"));
	for (const char *name : {"to", "dangling"}) {
		EXPECT_EQ(run({"copy", "--quiet", "--overwrite", path("from").c_str(),
			       path(name).c_str()}),
			  9);
		EXPECT_NE(err.str().find("symbolic link"), std::string::npos)
			<< err.str();
		EXPECT_TRUE(std::filesystem::is_symlink(path(name)));
	}
	EXPECT_EQ(text_of("other"), "somebody's");
	// A link to a directory is as good as the directory.
	std::filesystem::create_directory(path("v3"));
	std::filesystem::create_symlink("v3", path("current"));
	EXPECT_EQ(copy("current"), 0) << err.str();
	EXPECT_EQ(text_of("v3/from"), "what is copied");
}

TEST_F(CopyTest, AnEmptyNameIsAnError)
{
	EXPECT_EQ(run({"copy", path("from").c_str(), ""}), 2);
	EXPECT_EQ(run({"recv", ""}), 2);
}

TEST_F(CopyTest, OfAFileThatGrowsItsSizeIsCopied)
{
	std::atomic<bool> copied = false;

	write("from", std::string(8 << 20, 'x').c_str());
	std::thread grows([&] {
		std::ofstream more(path("from"), std::ios::app);

		while (!copied)
			more << 'y' << std::flush;
	});
	EXPECT_EQ(copy("to"), 0) << err.str();
	copied = true;
	grows.join();
	EXPECT_EQ(text_of("from").compare(0, text_of("to").size(), text_of("to")), 0);
	EXPECT_GE(text_of("to").size(), 8u << 20);
}

TEST_F(CopyTest, WhatHasNoSizeIsNotCopied)
{
	EXPECT_EQ(run({"copy", "/proc/version", path("to").c_str()}), 3);
	EXPECT_NE(err.str().find("its size is 0"), std::string::npos) << err.str();
	ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
	EXPECT_EQ(run({"copy", path("pipe").c_str(), path("to").c_str()}), 3);
	EXPECT_FALSE(std::filesystem::exists(path("to")));
}

// Both are found before a device is looked for.
TEST_F(CopyTest, WhatIsSentHasANameAndMayBeMany)
{
	std::vector<std::string> many;
	std::vector<const char *> words{"send", "--to", "nobody"};
	rlimit was{}, small{};

	write("a\nb", "");
	EXPECT_EQ(run({"send", path("from").c_str(), path("a\nb").c_str(), "--to",
		       "nobody"}),
		  2);
	for (int i = 0; i < 100; i++) {
		many.push_back(path(std::to_string(i).c_str()));
		std::ofstream(many.back()) << i;
	}
	for (const std::string &name : many)
		words.push_back(name.c_str());
	ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &was), 0);
	ASSERT_GT(was.rlim_max, 200u);
	small = was;
	small.rlim_cur = 64;
	::setrlimit(RLIMIT_NOFILE, &small);
	run(words);
	::setrlimit(RLIMIT_NOFILE, &was);
	EXPECT_EQ(err.str().find("Too many open files"), std::string::npos)
		<< err.str();
}

TEST_F(CopyTest, AFullDiskIsThatOfAFile)
{
	rlimit was{}, small{};

	write("from", std::string(9 << 20, 'x').c_str());
	::signal(SIGXFSZ, SIG_IGN);
	::getrlimit(RLIMIT_FSIZE, &was);
	small = was;
	small.rlim_cur = 1 << 20;
	::setrlimit(RLIMIT_FSIZE, &small);
	EXPECT_EQ(copy("to"), 9);
	::setrlimit(RLIMIT_FSIZE, &was);
	EXPECT_NE(err.str().find("/to: "), std::string::npos) << err.str();
	EXPECT_FALSE(std::filesystem::exists(path("to.part")));
}

TEST_F(CopyTest, WhatIsThereMeanwhileIsKept)
{
	write("to", "somebody's");
	auto part = make_part(path("to.part"), 0600);
	ASSERT_TRUE(part) << part.error().message();
	ASSERT_EQ(::write(part->get(), "new", 3), 3);
	auto kept = put_in_place(part->get(), path("to.part"), path("to"), false);
	ASSERT_FALSE(kept);
	EXPECT_EQ(kept.error().code(), errc::output);
	EXPECT_EQ(text_of("to"), "somebody's");
	EXPECT_TRUE(put_in_place(part->get(), path("to.part"), path("to"), true));
	EXPECT_EQ(text_of("to"), "new");
}

TEST_F(CommandLineTest, DataAndDocumentDoNotShareStandardOutput)
{
	EXPECT_EQ(run({"recv", "-", "--json"}), 2);
	EXPECT_NE(err.str().find("--report"), std::string::npos) << err.str();
}

// A report of an earlier run must not pass for a new one.
TEST_F(CopyTest, AReportSaysThatNothingWasMoved)
{
	write("report", "of yesterday");
	EXPECT_NE(run({"send", path("none").c_str(), "--to", "nobody", "--report",
		       path("report").c_str()}),
		  0);
	EXPECT_EQ(json::parse(text_of("report"), nullptr, false), json::array());
	// It is not written over what is sent.
	EXPECT_EQ(run({"send", path("from").c_str(), "--to", "nobody", "--report",
		       path("from").c_str()}),
		  2);
	EXPECT_EQ(text_of("from"), "what is copied");
	EXPECT_EQ(run({"send", path("from").c_str(), path("from").c_str(), "--to",
		       "nobody"}),
		  2);
	EXPECT_NE(run({"trace", "--out", path("new").c_str()}), 0);
	EXPECT_FALSE(std::filesystem::exists(path("new")));
}

TEST_F(CopyTest, TwoPathsMayLeadToOneFile)
{
	const std::string other = path("sub/../from");

	std::filesystem::create_directory(path("sub"));
	std::filesystem::create_symlink("sub", path("link"));
	std::filesystem::create_hard_link(path("from"), path("sub/same"));
	EXPECT_TRUE(is_same_file(path("from"), other));
	EXPECT_TRUE(is_same_file(path("from"), path("link/same")));
	EXPECT_FALSE(is_same_file(path("from"), path("none")));
	EXPECT_TRUE(is_same_file(path("link/none"), path("sub/none")));
	EXPECT_TRUE(is_same_file("none", "./none"));
	EXPECT_TRUE(is_same_file("none", std::filesystem::absolute("none").string()));
	EXPECT_FALSE(is_same_file(path("none"), path("sub/none")));
	EXPECT_FALSE(is_same_file("", ""));
	EXPECT_FALSE(is_same_file("/dev/null", "/dev/null"));
}

TEST_F(CopyTest, NoReportReplacesWhatIsReadOrReceived)
{
	const std::string from = path("from"), none = path("none"),
			  part = path("none.part"), plot = path("sub/../from"),
			  directory = path("sub");

	std::filesystem::create_directory(directory);
	::chmod(from.c_str(), 0600);
	write("none.part", "what was received");
	for (const auto &words : std::initializer_list<std::vector<const char *>>{
		     {"recv", from.c_str(), "--report", from.c_str()},
		     {"recv", from.c_str(), "--overwrite", "--report", plot.c_str()},
		     {"recv", none.c_str(), "--report", none.c_str()},
		     {"recv", none.c_str(), "--report", part.c_str()},
		     {"recv", none.c_str(), "--report", from.c_str(), "--token-file",
		      from.c_str()},
		     {"kv", "recv", "--report", from.c_str(), "--token-file",
		      from.c_str()},
		     {"bench", "--from", from.c_str(), "--to", "host", "--plot",
		      plot.c_str()},
		     {"bench", "nobody", "--plot", from.c_str(), "--token-file",
		      from.c_str()},
		     {"trace", "merge", from.c_str(), none.c_str(), "--out",
		      from.c_str()},
		     {"trace", "merge", none.c_str(), from.c_str(), "--out",
		      plot.c_str()}}) {
		EXPECT_EQ(run(words), 2) << words[0] << " " << words[1];
		EXPECT_NE(err.str().find("it would replace "), std::string::npos)
			<< err.str();
	}
	EXPECT_EQ(text_of("from"), "what is copied");
	EXPECT_EQ(text_of("none.part"), "what was received");
	EXPECT_FALSE(std::filesystem::exists(none));
	// No report at all can be written there.
	EXPECT_EQ(run({"recv", none.c_str(), "--report", directory.c_str()}), 9);
	EXPECT_NE(err.str().find(directory), std::string::npos) << err.str();
}

TEST_F(CopyTest, NoReportReplacesARedirectedFile)
{
	const std::string from = path("from");
	const unique_fd file(::open(from.c_str(), O_RDWR | O_CLOEXEC));
	auto run_with = [&](int standard, std::vector<const char *> words) {
		const unique_fd before(::dup(standard));

		::dup2(file.get(), standard);
		int status = run(std::move(words));
		::dup2(before.get(), standard);
		return status;
	};

	EXPECT_EQ(run_with(STDIN_FILENO,
			   {"send", "-", "--to", "nobody", "--report", from.c_str()}),
		  2);
	EXPECT_EQ(run_with(STDOUT_FILENO, {"recv", "-", "--report", from.c_str()}), 2);
	EXPECT_EQ(text_of("from"), "what is copied");
}

TEST_F(CopyTest, ATokenIsASecret)
{
	const std::string token = path("token");

	write("token", "secret\n");
	for (mode_t rights : {0604, 0602, 0607}) {
		::chmod(token.c_str(), rights);
		auto read = read_token(token);
		ASSERT_FALSE(read);
		EXPECT_EQ(read.error().code(), errc::denied);
		EXPECT_NE(read.error().message().find("chmod o= " + token),
			  std::string::npos);
	}
	for (mode_t rights : {0600, 0640, 0601}) {
		::chmod(token.c_str(), rights);
		EXPECT_EQ(read_token(token).value_or(""), "secret");
	}
}

TEST_F(CommandLineTest, FilesThatAreWrittenInTheEndAreLookedAtFirst)
{
	for (std::vector<const char *> words :
	     {std::vector<const char *>{"send", "/dev/null", "--to", "nobody",
					"--report", "/nowhere/x"},
	      {"recv", "--report", "/nowhere/x"},
	      {"bench", "--from", "host", "--to", "host", "--plot", "/nowhere/x"},
	      {"trace", "--out", "/nowhere/x"}}) {
		EXPECT_EQ(run(words), 9) << words[0];
		EXPECT_NE(err.str().find("/nowhere/x"), std::string::npos) << err.str();
	}
}

TEST(Child, IsAskedToEndAndThenKilled)
{
	int ends[2];

	ASSERT_EQ(::pipe(ends), 0); // inherited by the child
	const std::string ready = std::format(
		"; echo >&{}; sleep 60 </dev/null >/dev/null 2>&1 & wait; wait",
		ends[1]);
	auto start = [&](const char *trap) {
		char byte;
		auto one = child::start({"bash", "-c", trap + ready});
		EXPECT_TRUE(one);
		EXPECT_EQ(::read(ends[0], &byte, 1), 1); // its trap is set
		return std::move(one.value());
	};
	auto first = start("trap 'exit 7' TERM");
	EXPECT_EQ(first.end(after(std::chrono::seconds(20))), 7);
	auto stays = start("trap '' TERM");
	EXPECT_EQ(stays.end(after(std::chrono::milliseconds(200))), 128 + SIGKILL);
	::close(ends[0]);
	::close(ends[1]);
}

TEST(Child, BlocksNoSignals)
{
	sigset_t some, before;

	::sigemptyset(&some);
	::sigaddset(&some, SIGTERM);
	::sigprocmask(SIG_BLOCK, &some, &before);
	auto one = child::start({"sh", "-c", "kill -TERM $$; exit 0"});
	::sigprocmask(SIG_SETMASK, &before, nullptr);
	ASSERT_TRUE(one);
	EXPECT_EQ(one->reap(), 128 + SIGTERM);
}

TEST_F(CommandLineTest, InfoShowsAllAndFits)
{
	two_sockets();
	ASSERT_EQ(run({"info"}), 0);
	for (auto words : {"Linux 7.3.4-sluice, with the patch series",
			   "gpu1  gfx942  16 GiB", "mlx5_0", "400 Gb/s", "Flash 1000",
			   "CPUs 32-63", "p2p     straight", "use memory of node0"})
		EXPECT_NE(out.str().find(words), std::string::npos) << words;
	EXPECT_EQ(out.str().find("xgmi"), std::string::npos);
	ASSERT_EQ(run({"info", "--json"}), 0);
	EXPECT_EQ(parsed()["gpus"].size(), 2u);
	EXPECT_EQ(parsed()["routes"].size(), 28u);
	EXPECT_EQ(parsed()["nics"][0]["pci"]["numa_node"], 0);
	EXPECT_EQ(parsed()["gpus"][0]["pci"]["bridges"][0]["acs"], "not known");
}

TEST_F(CommandLineTest, InfoOfManyGpusFits)
{
	for (int i = 0; i < 16; i++)
		machine.gpu(std::format("pci0000:00/0000:00:{:02x}.0/0000:{:02x}:00.0",
					i + 1, i + 1),
			    128 + i);
	machine.soft_nic("rxe_with_a_long_name", "eth0");
	ASSERT_EQ(run({"info"}), 0);
	EXPECT_NE(out.str().find("gpu15"), std::string::npos);
}

TEST_F(CommandLineTest, InfoExplainsAPair)
{
	two_sockets();
	ASSERT_EQ(run({"info", "gpu0", "mlx5_0"}), 0);
	EXPECT_TRUE(out.str().starts_with("gpu0 - mlx5_0: peer-to-peer\n"))
		<< out.str();
	ASSERT_EQ(run({"--json", "info", "0000:03:00.0", "mlx5_1"}), 0);
	EXPECT_EQ(parsed()["path"], "host-bridge");
	EXPECT_EQ(parsed()["between"], json({"gpu0", "mlx5_1"}));
	EXPECT_EQ(parsed()["bytes_per_second"], 50e9);
}

TEST_F(CommandLineTest, NamesThatAreNoTextAreShown)
{
	auto disk = machine.disk("pci0000:00/0000:00:03.0/0000:05:00.0", "nvme0n1");
	machine.file(disk + "/nvme/nvme0/model", "Fl\xff\xfe\n");
	EXPECT_EQ(run({"info", "--json"}), 0);
	EXPECT_EQ(parsed()["disks"].size(), 1u);
}

/// "NAME=VALUE", in order, from the output for a shell.
std::vector<std::string> exported(const std::string &text)
{
	std::vector<std::string> all;
	std::istringstream lines(text);

	for (std::string line; std::getline(lines, line);)
		if (line.starts_with("export "))
			all.push_back(line.substr(7));
		else
			EXPECT_TRUE(line.starts_with("# ")) << line;
	return all;
}

TEST_F(CommandLineTest, EnvPrintsWhatAShellTakes)
{
	two_sockets();
	ASSERT_EQ(run({"env", "libfabric", "--nic", "mlx5_1"}), 0) << err.str();
	EXPECT_EQ(exported(out.str()),
		  (std::vector<std::string>{"FI_PROVIDER=verbs",
					    "FI_VERBS_DEVICE_NAME=mlx5_1",
					    "FI_VERBS_USE_ODP=1"}));
	ASSERT_EQ(run({"env", "ucx"}), 0) << err.str();
	auto ucx = exported(out.str());
	ASSERT_EQ(run({"env", "openmpi"}), 0) << err.str();
	auto mpi = exported(out.str());
	// Open MPI moves data by UCX.
	EXPECT_EQ(mpi[0], "OMPI_MCA_pml=ucx");
	EXPECT_EQ((std::vector(mpi.end() - static_cast<ptrdiff_t>(ucx.size()),
			       mpi.end())),
		  ucx);
}

TEST_F(CommandLineTest, EnvOfSoftRoceHasOneMore)
{
	const std::string only = "UCX_UD_VERBS_ETH_DGID_CHECK=n";
	auto has = [&] { return std::ranges::contains(exported(out.str()), only); };

	two_sockets();
	run({"env", "ucx"});
	EXPECT_FALSE(has());
	machine.soft_nic("rxe0", "eth0");
	run({"env", "ucx"});
	EXPECT_TRUE(has());
	run({"env", "ucx", "--nic", "rxe0"});
	EXPECT_TRUE(has());
	run({"env", "ucx", "--nic", "mlx5_0"});
	EXPECT_FALSE(has());
	EXPECT_TRUE(
		std::ranges::contains(exported(out.str()), "UCX_NET_DEVICES=mlx5_0:1"));
	run({"env", "libfabric", "--nic", "rxe0"});
	EXPECT_TRUE(std::ranges::contains(exported(out.str()), "FI_UNIVERSE_SIZE=32"));
}

TEST_F(CommandLineTest, EnvGivesAReasonForEach)
{
	for (const char *library : {"ucx", "openmpi", "libfabric"}) {
		ASSERT_EQ(run({"--json", "env", library}), 0) << err.str();
		json all = parsed();
		EXPECT_EQ(all["library"], library);
		EXPECT_GE(all["variables"].size(), 2u);
		for (const json &v : all["variables"])
			EXPECT_GT(v["reason"].get<std::string>().size(), 20u) << v;
	}
}

TEST_F(CommandLineTest, EnvRefusesWhatItCannotName)
{
	two_sockets();
	EXPECT_EQ(run({"env"}), 2);
	EXPECT_EQ(run({"env", "nccl"}), 2);
	EXPECT_NE(err.str().find("nccl"), std::string::npos) << err.str();
	EXPECT_EQ(run({"env", "ucx", "--nic", "mlx5_9"}), 4);
	EXPECT_NE(err.str().find("mlx5_9"), std::string::npos) << err.str();
	// a shell would run a command in the name
	machine.soft_nic("rxe;true", "eth0");
	EXPECT_EQ(run({"env", "ucx", "--nic", "rxe;true"}), 4);
	EXPECT_NE(err.str().find("letters"), std::string::npos) << err.str();
}

// Devices, interfaces and files may have any name, and a terminal obeys.
TEST_F(CommandLineTest, WhatATerminalObeysIsNotPrinted)
{
	auto plain = [](const std::string &text) {
		return std::ranges::all_of(text, [](char c) {
			return c == '\n' || (c >= ' ' && c <= '~');
		});
	};

	two_sockets();
	machine.soft_nic("rxe\x1b[2J", "e\x07th\xc3\xa9");
	machine.kernel("7.3.4\x1b[1m");
	for (const auto &words : std::initializer_list<std::vector<const char *>>{
		     {"info"},
		     {"info", "gpu0", "rxe\x1b[2J"},
		     {"info", "gpu\x1b[9m", "node0"},
		     {"doctor"}}) {
		run(words);
		EXPECT_NE((out.str() + err.str()).find("?["), std::string::npos)
			<< out.str() << err.str();
		EXPECT_TRUE(plain(out.str())) << out.str();
		EXPECT_TRUE(plain(err.str())) << err.str();
	}
}

TEST_F(CommandLineTest, DoctorExitsByTheWorst)
{
	EXPECT_EQ(run({"doctor", "--json"}), 21);
	EXPECT_EQ(verdict_of("GPU"), "missing");
	EXPECT_EQ(verdict_of("NIC"), "missing");

	two_sockets();
	EXPECT_EQ(run({"doctor"}), 0) << out.str();
	EXPECT_NE(out.str().find("0 missing, 0 slower"), std::string::npos);
	EXPECT_EQ(run({"doctor", "--json"}), 0);
	EXPECT_EQ(verdict_of("gpu0 batches"), "not known");
	EXPECT_EQ(verdict_of("gpu0 SVM"), "ok");
	EXPECT_EQ(parsed()["exit_status"], 0);

	machine.file("proc/sys/kernel/numa_balancing", "1\n");
	EXPECT_EQ(run({"doctor"}), 20);
	EXPECT_NE(out.str().find("try: sysctl kernel.numa_balancing=0"),
		  std::string::npos);
}

TEST_F(CommandLineTest, DoctorFindsNothingWhereAllIsWell)
{
	two_sockets();
	for (const check &one : all_of(well(machine))) {
		bool acs = one.name.ends_with("to NIC"); // no root, no IOMMU

		EXPECT_EQ(one.is, acs ? verdict::not_known : verdict::ok)
			<< one.name << ": " << one.found;
		EXPECT_TRUE(one.remedy.empty()) << one.name << ": " << one.remedy;
	}
}

TEST_F(CommandLineTest, DoctorFindsEachFault)
{
	struct fault {
		const char *name;
		verdict is;
		void (*make)(facts &);
	};
	constexpr auto missing = verdict::missing, slower = verdict::slower;
	const fault faults[] = {
		{"io_uring", missing, [](facts &f) { f.uring_errno = EPERM; }},
		{"amdkfd", missing, [](facts &f) { f.kfd_errno = EACCES; }},
		{"amdkfd", missing, [](facts &f) { f.kfd_errno = ENOENT; }},
		{"gpu1 node", missing, [](facts &f) { f.gpus[1].open_errno = EACCES; }},
		{"gpu1 batches", slower, [](facts &f) { f.gpus[1].batch->ops = 0; }},
		{"mlx5_0 memory", missing,
		 [](facts &f) { f.nics[0].open_errno = ENODEV; }},
		{"mlx5_0 memory", slower,
		 [](facts &f) { f.nics[0].on_demand = false; }},
		{"memlock", missing, [](facts &f) { f.nics[0].on_demand = false; }},
		{"huge pages", slower, [](facts &f) { f.huge_pages = "never"; }},
		{"NUMA balancing", slower, [](facts &f) { f.numa_balancing = 1; }},
	};

	two_sockets();
	for (const fault &each : faults) {
		facts of = well(machine);

		each.make(of);
		check found = find(of, each.name);
		EXPECT_EQ(found.is, each.is) << each.name;
		EXPECT_FALSE(found.remedy.empty()) << each.name;
	}
}

TEST_F(CommandLineTest, DoctorDoesNotBlameWhatIsNotUsed)
{
	two_sockets();
	const std::string card = "pci0000:00/0000:00:05.0/0000:06:00.";
	const std::string state = "sys/devices/" + card;

	machine.nic(card + "0", "mlx5_8");
	machine.nic(card + "1", "mlx5_9");
	machine.file(state + "1/infiniband/mlx5_9/ports/1/state", "1: DOWN\n");
	auto other = machine.gpu("pci0000:00/0000:00:07.0", 140);
	machine.driver(other, "i915");
	facts of = well(machine);
	size_t last = of.gpus.size() - 1;

	EXPECT_EQ(find(of, "mlx5_9 port").is, verdict::ok);
	EXPECT_EQ(find(of, "gpu1 to NIC").is, verdict::not_known); // ACS
	EXPECT_EQ(find(of, std::format("gpu{} driver", last)).is, verdict::ok);
	for (const check &one : all_of(of))
		EXPECT_NE(one.is, verdict::missing) << one.name << ": " << one.found;
	// A container that may use one GPU only.
	of.gpus[1].open_errno = EPERM;
	EXPECT_EQ(find(of, "gpu1 node").is, verdict::not_known);
	EXPECT_EQ(find(of, "gpu1 to NIC").name, "none");
	// A card without any cable, beside others; software is no excuse for it.
	machine.file(state + "0/infiniband/mlx5_8/ports/1/state", "1: DOWN\n");
	EXPECT_EQ(find(well(machine), "mlx5_9 port").is, verdict::slower);
	for (gpu_facts &g : of.gpus)
		g.open_errno = EPERM;
	EXPECT_EQ(find(of, "gpu1 node").is, verdict::missing);
}

TEST_F(CommandLineTest, DoctorKnowsWhomTheLimitBinds)
{
	two_sockets();
	facts of = well(machine);

	of.nics[0].on_demand = false;
	EXPECT_EQ(find(of, "memlock").is, verdict::missing);
	of.may_pin_more = true;
	EXPECT_EQ(find(of, "memlock").is, verdict::ok);
	for (nic_facts &n : of.nics)
		n.on_demand = std::nullopt;
	EXPECT_EQ(find(of, "memlock").found.find("needs none"), std::string::npos);
}

TEST_F(CommandLineTest, DoctorTakesTheCardOfTheSameSocket)
{
	machine.node(0, "0-31", "10 32");
	machine.node(1, "32-63", "32 10");
	machine.cpu("AuthenticAMD", 25);
	machine.nic("pci0000:80/0000:80:02.0/0000:84:00.0", "mlx5_1", 1);
	// Without a GPU, host memory of the right node is taken.
	EXPECT_EQ(find(well(machine), "host to NIC").is, verdict::ok);
	machine.nic("pci0000:00/0000:00:02.0/0000:04:00.0", "mlx5_0", 0);
	machine.gpu("pci0000:80/0000:80:01.0/0000:83:00.0", 128, 1);
	check best = find(well(machine), "gpu0 to NIC");
	EXPECT_TRUE(best.found.starts_with("mlx5_1")) << best.found;
}

TEST_F(CommandLineTest, DoctorSeesWhatEnginesAreTold)
{
	two_sockets();
	facts of = well(machine);
	auto tell = [&](const char *engine) {
		of.environment.clear();
		for (const variable &v : variables_for(engine, "", false))
			of.environment[v.name] = v.value;
	};

	for (const char *engine : {"ucx", "openmpi", "libfabric"}) {
		tell(engine);
		EXPECT_EQ(find(of, engine).is, verdict::ok) << find(of, engine).found;
		for (const variable &v : variables_for(engine, "", false)) {
			of.environment[v.name] = "something";
			check found = find(of, engine);
			EXPECT_EQ(found.is, verdict::slower) << v.name;
			EXPECT_NE(found.found.find(v.name + " is something and not " +
						   v.value),
				  std::string::npos)
				<< found.found;
			EXPECT_EQ(found.remedy,
				  std::string("eval \"$(sluice env ") + engine + ")\"");
			tell(engine);
		}
	}
	// soft RoCE has one more
	tell("ucx");
	machine.soft_nic("rxe0", "eth0");
	of.machine = *topology::read(machine.root());
	of.nics.resize(of.machine.nics().size());
	EXPECT_NE(find(of, "ucx").found.find("UCX_UD_VERBS_ETH_DGID_CHECK is not set"),
		  std::string::npos)
		<< find(of, "ucx").found;
	// but UCX is told to use another card
	of.environment["UCX_NET_DEVICES"] = of.machine.nics()[0].name + ":1";
	EXPECT_EQ(find(of, "ucx").is, verdict::ok) << find(of, "ucx").found;
	of.environment["UCX_NET_DEVICES"] = "rxe0:1";
	EXPECT_EQ(find(of, "ucx").is, verdict::slower);
	// settings for UCX do not count for Open MPI
	EXPECT_EQ(find(of, "openmpi").is, verdict::ok);
}

TEST_F(CommandLineTest, RunRefusesWhatItCannotDo)
{
	EXPECT_EQ(run({"run", "--", "true"}), 2);
	EXPECT_NE(err.str().find("--device-memory"), std::string::npos) << err.str();
	EXPECT_EQ(run({"run", "--device-memory"}), 2);
	EXPECT_NE(err.str().find("COMMAND"), std::string::npos) << err.str();
	EXPECT_EQ(run({"run", "--device-memory", "--min", "-1", "--", "true"}), 2);
	EXPECT_NE(err.str().find("--min"), std::string::npos) << err.str();
	EXPECT_EQ(
		run({"run", "--device-memory", "--gpu", "ffff:ff:1f.7", "--", "true"}),
		4);
	EXPECT_NE(err.str().find("ffff:ff:1f.7"), std::string::npos) << err.str();
}

TEST(Child, BecomesNothingThatIsNotThere)
{
	error why = become({"/no/such/program"});

	EXPECT_EQ(why.code(), errc::input);
	EXPECT_NE(why.message().find("/no/such/program"), std::string::npos);
}

TEST_F(CommandLineTest, DoctorTellsThatOdpMovesWrongBytes)
{
	machine.soft_nic("rxe0", "eth0");
	facts of = well(machine);
	of.nics[0].on_demand = false;
	of.nics[0].on_demand_wrong = true;
	check found = find(of, "rxe0 memory");

	EXPECT_EQ(found.is, verdict::slower);
	EXPECT_NE(found.found.find("ODP moves wrong bytes on this kernel"),
		  std::string::npos)
		<< found.found;
	EXPECT_NE(found.remedy.find("series 04"), std::string::npos) << found.remedy;
}

TEST_F(CommandLineTest, DoctorSeesWhatTheMachineLacks)
{
	machine.node(0, "0", "10");
	auto gpu = machine.gpu("pci0000:00/0000:00:01.0/0000:03:00.0", 128, 0,
			       16ull << 30, 256ull << 20);
	machine.file(gpu + "/current_link_width", "8\n");
	machine.soft_nic("rxe0", "eth0");
	machine.file("sys/devices/virtual/infiniband/rxe0/ports/1/state", "1: DOWN\n");
	facts of = well(machine);

	EXPECT_EQ(find(of, "kernel").is, verdict::slower);
	EXPECT_EQ(find(of, "gpu0 SVM").is, verdict::missing);
	EXPECT_EQ(find(of, "gpu0 BAR").is, verdict::slower);
	EXPECT_EQ(find(of, "gpu0 slot").is, verdict::slower);
	EXPECT_EQ(find(of, "rxe0 port").is, verdict::missing);
	EXPECT_EQ(find(of, "gpu0 to NIC").is, verdict::slower);
	EXPECT_NE(find(of, "kernel").remedy.find("series"), std::string::npos);
}

TEST_F(CommandLineTest, WithoutGpusTheHostIsJudged)
{
	machine.soft_nic("rxe0", "eth0");
	EXPECT_EQ(find(well(machine), "host to NIC").is, verdict::slower);
	machine.nic("pci0000:00/0000:00:01.0/0000:04:00.0", "mlx5_0");
	EXPECT_EQ(find(well(machine), "host to NIC").is, verdict::ok);
}

TEST_F(CommandLineTest, ABetterPathCountsMoreThanFewerObjections)
{
	std::string up = "pci0000:00/0000:00:01.0/0000:01:00.0/";

	machine.gpu(up + "0000:02:00.0/0000:03:00.0", 128, 0, 16ull << 30, 1ull << 28);
	machine.nic(up + "0000:02:01.0/0000:04:00.0", "mlx5_0");
	machine.soft_nic("a_rxe", "eth0");
	machine.cpu("AuthenticAMD", 25);
	machine.acs(machine.pci(up + "0000:02:00.0"), 4);
	check best = find(well(machine), "gpu0 to NIC");
	EXPECT_TRUE(best.found.starts_with("mlx5_0 host-bridge")) << best.found;
}

TEST_F(CommandLineTest, DoctorJudgesByTheBestNic)
{
	two_sockets();
	machine.soft_nic("rxe0", "eth0");
	check best = find(well(machine), "gpu1 to NIC");

	EXPECT_TRUE(best.found.starts_with("mlx5_1 peer-to-peer")) << best.found;
	EXPECT_NE(best.found.find("rxe0 by-cpu"), std::string::npos);
	EXPECT_NE(best.is, verdict::slower);
	check disk = find(well(machine), "gpu1 to disk");
	EXPECT_TRUE(disk.found.starts_with("nvme1n1 staged")) << disk.found;
}
