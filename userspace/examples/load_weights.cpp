// SPDX-License-Identifier: MIT
// Load a model's weights, a safetensors file, to the memory of a GPU: from a file of this
// machine, or by a stream from a machine that has it. Then compare each tensor, as it is in
// that memory, with its SHA-256.
//
//	load_weights FILE [--gpu 0]			from here
//	load_weights FILE --serve			there
//	load_weights --from HOST [--gpu 0]		from there
//
// The file lies in one buffer as it is, so a tensor is a slice of the buffer. The digests
// are in the metadata, as "sha256:NAME": make_weights.py writes such files.
#include <algorithm>
#include <chrono>
#include <fcntl.h>
#include <filesystem>
#include <print>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <sluice/stream.hpp>

#include "home.hpp"
#include "safetensors.hpp"

using namespace sluice;

static constexpr size_t piece_bytes = 4 << 20, pieces_at_once = 4;

struct options {
	std::string file, from, gpu, nic;
	uint16_t port = 7482;
	unsigned timeout = 60; // seconds, for a peer
	bool serve = false;
};

struct weights {
	std::string name;
	slice bytes; // all of the file
};

class source_file {
public:
	explicit source_file(const std::string &path)
		: name(std::filesystem::path(path).filename()),
		  fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC))
	{
		struct stat st{};

		if (!fd || ::fstat(fd.get(), &st) < 0)
			exit_for(fail_errno(path, "open", errno, errc::input).error());
		if (!S_ISREG(st.st_mode) || !st.st_size)
			exit_for(
				{errc::input, path, "it is no regular file, or empty"});
		size = static_cast<uint64_t>(st.st_size);
	}

	std::string name;
	unique_fd fd;
	uint64_t size = 0;
};

static task<result<void>> read(context &ring, const source_file &file, uint64_t offset,
			       slice to)
{
	for (size_t n = 0; n < to.size();) {
		auto got = co_await ring.read(file.fd.get(), to.part(n, to.size() - n),
					      offset + n);
		if (!got)
			co_return std::unexpected(got.error());
		if (!*got)
			co_return fail(errc::input, file.name,
				       std::format("it ended at {} of {} bytes",
						   offset + n, file.size));
		n += *got;
	}
	co_return {};
}

/// Bring one piece after the other to its place in @p to, by way of @p window if that
/// place is in a GPU. @p next is the offset of the next piece that no task has taken.
static task<result<void>> bring_pieces(context &ring, home &at, const source_file &file,
				       slice to, slice window, uint64_t &next)
{
	while (next < file.size) {
		uint64_t offset = std::exchange(next, next + piece_bytes);
		slice piece =
			to.part(offset, std::min(piece_bytes, file.size - offset));
		slice read_to = at.gpu() ? window.part(0, piece.size()) : piece;

		if (auto done = co_await read(ring, file, offset, read_to); !done)
			co_return done;
		if (!at.gpu())
			continue;
		batch copy(1);
		copy.copy(piece, read_to).fault_in();
		if (auto done = co_await at.gpu()->submit(copy); !done)
			co_return std::unexpected(done.error());
	}
	co_return {};
}

/// From a file. While one piece is read, others are copied.
static weights load(context &ring, home &at, const options &o)
{
	source_file file(o.file);
	slice to = at.take(file.size).part(0, file.size);
	buffer windows = at.take_host(pieces_at_once * piece_bytes);
	std::vector<task<result<void>>> all;
	uint64_t next = 0;

	for (size_t n = 0; n < pieces_at_once; n++)
		all.push_back(bring_pieces(ring, at, file, to,
					   windows.part(n * piece_bytes, piece_bytes),
					   next));
	for (auto &each : all)
		or_exit(each.run(ring));
	std::println("{}: {} bytes, from a file", file.name, file.size);
	return {file.name, to};
}

/// From a peer: its card writes directly to the destination if it can.
static weights receive(context &ring, home &at, const options &o)
{
	auto card = or_exit(nic::open(ring, o.nic));
	auto peer = or_exit(endpoint::connect(ring, card, o.from, o.port, {},
					      after(std::chrono::seconds(o.timeout))));
	auto stream = or_exit(receiver::make(ring, peer, card, {.gpu = at.gpu()}));
	auto offer = or_exit(stream.next().run(ring));
	if (!offer || offer->size == stream_source::unknown || !offer->size)
		exit_for({errc::peer_error, o.from, "it has no weights"});
	slice to = at.take(offer->size).part(0, offer->size);
	auto report = or_exit(stream.receive({.to = {to}}).run(ring));
	or_exit(stream.next().run(ring)); // the peer has no more
	std::println("{}: {} bytes, from {} by {}", report.name, report.bytes,
		     peer.peer(), ::name(report.path));
	return {report.name, to};
}

static void serve(context &ring, home &at, const options &o)
{
	source_file file(o.file);
	auto card = or_exit(nic::open(ring, o.nic));
	auto door = or_exit(listener::open(ring, card, "", o.port, {}));
	auto peer = or_exit(door.accept(after(std::chrono::seconds(o.timeout))));
	auto stream = or_exit(sender::make(ring, peer, card, {.gpu = at.gpu()}));
	auto report = or_exit(stream.send({.name = file.name,
					   .file = file.fd.get(),
					   .size = file.size})
				      .run(ring));
	or_exit(stream.finish().run(ring));
	std::println("{}: {} bytes to {}", file.name, report.bytes, peer.peer());
}

static std::vector<safetensors::tensor> tensors_of(home &at, const weights &w)
{
	const uint64_t first = std::min(safetensors::prefix_bytes, w.bytes.size());
	auto seen = [&](uint64_t from, uint64_t length) {
		slice there = at.take_host(length).part(0, length);

		at.copy({{there, w.bytes.part(from, length)}});
		return there;
	};
	uint64_t size = or_exit(safetensors::header_size(seen(0, first).bytes(),
							 w.bytes.size(), w.name));
	slice header = size ? seen(first, size) : slice();
	std::string_view text(size ? reinterpret_cast<char *>(header.data()) : "",
			      size);

	return or_exit(safetensors::read_header(text, w.bytes.size(), w.name));
}

static std::string digest_of(home &at, const slice &tensor, const slice &window)
{
	sha256 sum;

	for (size_t n = 0; n < tensor.size(); n += window.size()) {
		slice part = tensor.part(n, std::min(window.size(), tensor.size() - n));
		slice seen = window.part(0, part.size());

		at.copy({{seen, part}});
		sum.add(seen.bytes());
	}
	return to_string(sum.digest());
}

/// The number of tensors that are wrong.
static size_t count_wrong(home &at, const weights &w)
{
	auto tensors = tensors_of(at, w);
	buffer window = at.take_host(piece_bytes);
	size_t wrong = 0, unknown = 0;

	for (const auto &t : tensors) {
		auto digest = digest_of(at, w.bytes.part(t.begin, t.size), window);
		bool known = !t.sha256.empty(), right = digest == t.sha256;

		unknown += !known;
		wrong += known && !right;
		std::println("{:40} {:8} {:12} bytes  {}", t.name, t.dtype, t.size,
			     !known  ? "SHA-256 " + digest
			     : right ? "right"
				     : "WRONG");
	}
	std::println("{} tensors in {}: {} wrong, {} without a digest", tensors.size(),
		     at.name(), wrong, unknown);
	return wrong;
}

int main(int argc, char **argv)
{
	options o;
	CLI::App app("Load a safetensors file to the memory of a GPU.");

	auto *file = app.add_option("FILE", o.file, "safetensors file");
	app.add_option("--from", o.from, "host that serves one");
	app.add_flag("--serve", o.serve, "send FILE to who asks first")->needs(file);
	app.add_option("--gpu", o.gpu, "0000:03:00.0, or 0; default: host memory");
	app.add_option("--nic", o.nic, "RDMA device, if there are several");
	app.add_option("--port", o.port, "where a host serves")->capture_default_str();
	app.add_option("--timeout", o.timeout, "for a peer, seconds")
		->capture_default_str();
	CLI11_PARSE(app, argc, argv);
	if (o.file.empty() == o.from.empty())
		exit_for({errc::usage, "load_weights",
			  "it wants either a FILE or a host, --from"});

	auto ring = or_exit(context::open());
	home at(ring, o.gpu);
	if (o.serve) {
		serve(ring, at, o);
		return 0;
	}
	auto loaded = o.file.empty() ? receive(ring, at, o) : load(ring, at, o);
	return count_wrong(at, loaded) != 0;
}
