// SPDX-License-Identifier: MIT
// Stands in for libFuzzer where there is none:
//   replay PATH...            run every file, or every file of a directory
//   replay --mutate SECONDS SEED PATH...   and change them at random
#include "chaos.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

using sluice::emu::Chaos;
using Input = std::vector<unsigned char>;

extern "C" int LLVMFuzzerTestOneInput(const unsigned char *, size_t);

constexpr size_t longest = 8192;

static void load(const std::filesystem::path &path, std::vector<Input> &to)
{
	if (std::filesystem::is_directory(path)) {
		for (const auto &e : std::filesystem::directory_iterator(path))
			load(e.path(), to);
		return;
	}
	std::ifstream f(path, std::ios::binary);
	to.emplace_back(std::istreambuf_iterator<char>(f),
			std::istreambuf_iterator<char>());
}

static Input mutate(Input in, const std::vector<Input> &all, Chaos &chaos)
{
	for (auto n = 1 + chaos.below(6); n; n--) {
		size_t at = in.empty() ? 0 : chaos.below(in.size());
		const Input &other = all[chaos.below(all.size())];
		switch (in.empty() ? 4 : chaos.below(6)) {
		case 0: in[at] ^= 1u << chaos.below(8); break;
		case 1: in[at] = static_cast<unsigned char>(chaos.below(256)); break;
		case 2: in[at] = chaos.one_in(2) ? 0xff : 0; break;
		case 3: in.resize(at); break;
		case 4: in.insert(in.end(), other.begin(), other.end()); break;
		case 5:
			in.insert(in.begin() + static_cast<long>(at), 4,
				  static_cast<unsigned char>(chaos.below(256)));
			break;
		}
	}
	if (in.size() > longest)
		in.resize(longest);
	return in;
}

// An input that crashes stays in the file "crash.last". The file is mapped, as
// writing it each time would take longer than most inputs.
class Remembered {
public:
	Remembered()
		: fd_(open("crash.last", O_RDWR | O_CREAT | O_CLOEXEC, 0666)),
		  at_(mmap(nullptr, longest, PROT_READ | PROT_WRITE, MAP_SHARED, fd_,
			   0))
	{
		if (fd_ < 0 || at_ == MAP_FAILED) {
			std::perror("crash.last");
			std::exit(2);
		}
	}

	void operator()(const Input &in)
	{
		if (ftruncate(fd_, static_cast<off_t>(in.size())) == 0)
			std::copy(in.begin(), in.end(),
				  static_cast<unsigned char *>(at_));
	}

private:
	int fd_;
	void *at_;
};

static void run(const Input &in)
{
	static Remembered remember;

	remember(in);
	LLVMFuzzerTestOneInput(in.data(), in.size());
}

int main(int argc, char **argv)
{
	std::vector<Input> corpus;
	int first = 1;
	long seconds = 0;
	Chaos chaos(1);

	if (argc > 3 && std::string(argv[1]) == "--mutate") {
		seconds = std::atol(argv[2]);
		chaos = Chaos(std::strtoull(argv[3], nullptr, 10) + 1);
		first = 4;
	}
	for (int i = first; i < argc; i++)
		load(argv[i], corpus);
	if (corpus.empty()) {
		std::fputs("replay: no input\n", stderr);
		return 2;
	}
	for (const Input &in : corpus)
		LLVMFuzzerTestOneInput(in.data(), in.size());
	auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
	unsigned long rounds = corpus.size();
	for (; std::chrono::steady_clock::now() < end; rounds++)
		run(mutate(corpus[chaos.below(corpus.size())], corpus, chaos));
	std::printf("%lu inputs\n", rounds);
	return 0;
}
