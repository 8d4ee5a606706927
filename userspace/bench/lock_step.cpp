// SPDX-License-Identifier: MIT
// Sends a file to another machine through the video memory of both, one step at a time:
// read, copy, write by RDMA, tell, copy, write, acknowledge. Each step is waited for before
// the next begins, with one piece in flight. A stream has to be faster than this.
//
//	lock-step recv NIC GPU FILE
//	lock-step send NIC GPU FILE ADDRESS
//
// The sender prints the MB/s over the whole time. Neither checks what it moves.
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <span>
#include <string>
#include <vector>

#include "sluice/device.hpp"
#include "sluice/endpoint.hpp"
#include "sluice/nic.hpp"

using namespace sluice;

namespace {

constexpr uint16_t port = 7473;
constexpr size_t piece = 4 << 20;

template <class T> T need(result<T> got)
{
	if (!got) {
		std::fprintf(stderr, "lock-step: %s\n",
			     std::string(got.error().message()).c_str());
		std::exit(1);
	}
	if constexpr (!std::is_void_v<T>)
		return *std::move(got);
}

template <class T> std::span<const std::byte> bytes_of(const T &what)
{
	return std::as_bytes(std::span(&what, 1));
}

template <class T> T hear(endpoint &from)
{
	T what{};

	need(from.receive(std::as_writable_bytes(std::span(&what, 1))).wait());
	return what;
}

struct end {
	end(const char *card_name, const char *gpu_name, const char *path, int flags)
		: ring(need(context::open())), gpu(need(device::open(ring, gpu_name))),
		  card(need(nic::open(ring, card_name))),
		  host(need(buffer::host(piece))), video(need(gpu.svm(piece))),
		  file(::open(path, flags | O_CLOEXEC, 0644))
	{
		need(gpu.attach(host));
		in.fault_in().copy(video, host);
		out.fault_in().copy(host, video);
	}

	context ring;
	device gpu;
	nic card;
	buffer host, video;
	batch in, out;
	unique_fd file;
};

int receive(end &here)
{
	auto door = need(listener::open(here.ring, here.card, "", port, {}));
	auto with = need(door.accept(after(std::chrono::seconds(30))));
	auto mine = need(here.card.register_memory(here.video, remote::write));

	need(with.send(bytes_of(remote_memory{here.video.address(), piece,
					      mine.remote_key()}))
		     .wait());
	for (uint64_t at = 0;;) {
		auto length = hear<uint64_t>(with);

		if (!length)
			return 0;
		need(here.gpu.submit(here.out).wait());
		need(here.ring.write(here.file.get(), here.host.part(0, length), at)
			     .wait());
		at += length;
		need(with.send(bytes_of(at)).wait());
	}
}

int send(end &here, const char *address)
{
	auto with = need(endpoint::connect(here.ring, here.card, address, port, {},
					   after(std::chrono::seconds(30))));
	auto mine = need(here.card.register_memory(here.video, remote::none));
	auto there = hear<remote_memory>(with);
	auto began = clock::now();
	uint64_t at = 0;

	for (uint64_t n;
	     (n = need(here.ring.read(here.file.get(), here.host, at).wait()));) {
		need(here.gpu.submit(here.in).wait());
		need(with.write(here.video.part(0, n), mine, there, 0).wait());
		need(with.send(bytes_of(n)).wait());
		at += n;
		if (hear<uint64_t>(with) != at)
			return 1;
	}
	std::printf(
		"%.3f\n",
		static_cast<double>(at) / 1e6 /
			std::chrono::duration<double>(clock::now() - began).count());
	need(with.send(bytes_of(uint64_t{0})).wait());
	// The peer leaves first.
	(void)with.receive({}).wait();
	return 0;
}

} // namespace

int main(int argc, char **argv)
{
	const std::vector<std::string> words(argv + 1, argv + argc);
	bool sends = words.size() == 5 && words[0] == "send";

	if (!sends && (words.size() != 4 || words[0] != "recv")) {
		std::fputs("usage: lock-step recv NIC GPU FILE\n"
			   "       lock-step send NIC GPU FILE ADDRESS\n",
			   stderr);
		return 2;
	}
	end here(argv[2], argv[3], argv[4],
		 sends ? O_RDONLY : O_RDWR | O_CREAT | O_TRUNC);
	if (!here.file) {
		std::perror(argv[4]);
		return 1;
	}
	return sends ? send(here, argv[5]) : receive(here);
}
