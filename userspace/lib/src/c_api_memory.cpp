// SPDX-License-Identifier: MIT
// The C API: buffers.
#include "c_api.hpp"

using namespace sluice;
using namespace sluice::c;

slice c::unchecked(const sluice_slice *s)
{
	if (!s || !s->buffer)
		return {};
	const buffer &of = s->buffer->it;
	uint64_t length = s->length;
	if (length == SLUICE_TO_END)
		length = of.size() - std::min<uint64_t>(of.size(), s->offset);
	return {of, s->offset, length};
}

std::vector<slice> c::unchecked_all(const sluice_slice *s, size_t count)
{
	std::vector<slice> all;

	for (size_t i = 0; s && i < count; i++)
		all.push_back(unchecked(&s[i]));
	return all;
}

result<slice> c::slice_of(const sluice_slice *s, std::string_view name)
{
	SLUICE_CHECK(given(s, name));
	if (!s->buffer)
		return fail(errc::usage, name, "its buffer is NULL");
	slice part = unchecked(s);
	if (!part.valid())
		return fail(
			errc::usage, name,
			std::format(
				"{} bytes at {} are outside of its buffer of {} bytes",
				part.size(), part.offset(), part.of().size()));
	return part;
}

result<std::vector<slice>> c::slices_of(const sluice_slice *s, size_t count,
					std::string_view name)
{
	std::vector<slice> all;

	SLUICE_CHECK(given(s, name));
	for (size_t i = 0; i < count; i++) {
		auto one = slice_of(&s[i], name);

		if (!one)
			return std::unexpected(
				std::move(one.error()).at(static_cast<uint32_t>(i)));
		all.push_back(std::move(*one));
	}
	return all;
}

int sluice_buffer_host(uint64_t size, const struct sluice_host_options *options,
		       sluice_buffer **to)
{
	return guarded([&]() -> result<void> {
		SLUICE_CHECK(given(to, "buffer"));
		SLUICE_TRY(auto o, taken(options, "options"));
		SLUICE_CHECK(known_flags(o.flags,
					 SLUICE_HOST_ON_NODE | SLUICE_HOST_SMALL_PAGES,
					 "options"));
		if (o.flags & SLUICE_HOST_ON_NODE && o.numa_node < 0)
			return fail(errc::usage, "options", "numa_node is negative");
		SLUICE_TRY(
			auto memory,
			buffer::host(size, {.numa_node = o.flags & SLUICE_HOST_ON_NODE
								 ? o.numa_node
								 : -1,
					    .huge_pages = !(o.flags &
							    SLUICE_HOST_SMALL_PAGES)}));
		hand_out(to, std::move(memory));
		return {};
	});
}

int sluice_buffer_dup(const sluice_buffer *memory, sluice_buffer **to)
{
	return guarded([&]() -> result<void> {
		SLUICE_CHECK(all_given("buffer again", memory, to));
		hand_out(to, buffer(memory->it));
		return {};
	});
}

void sluice_buffer_free(sluice_buffer *memory)
{
	delete memory;
}

uint64_t sluice_buffer_size(const sluice_buffer *memory)
{
	return memory ? memory->it.size() : 0;
}

int sluice_buffer_kind(const sluice_buffer *memory)
{
	static_assert(static_cast<int>(memory::host) == SLUICE_MEMORY_HOST &&
		      static_cast<int>(memory::svm) == SLUICE_MEMORY_SVM &&
		      static_cast<int>(memory::vram) == SLUICE_MEMORY_VRAM);
	int err = guarded([&] { return given(memory, "buffer"); });

	return err ? err : static_cast<int>(memory->it.kind());
}

int sluice_buffer_map(const sluice_buffer *memory, void **data)
{
	return guarded([&]() -> result<void> {
		SLUICE_CHECK(all_given("buffer data", memory, data));
		if (!memory->it.mapped())
			return fail(errc::unsupported, "buffer",
				    "the CPU does not reach "
				    "it: copy it to a host buffer by a batch");
		*data = memory->it.data();
		return {};
	});
}

int sluice_buffer_export(const sluice_buffer *memory, int *dmabuf)
{
	return guarded([&]() -> result<void> {
		SLUICE_CHECK(all_given("buffer dmabuf", memory, dmabuf));
		SLUICE_TRY(auto fd, memory->it.export_dmabuf());
		*dmabuf = fd.release();
		return {};
	});
}

int sluice_buffer_verify_node(const sluice_buffer *memory, int node)
{
	return guarded([&]() -> result<void> {
		SLUICE_CHECK(given(memory, "buffer"));
		return memory->it.verify_node(node);
	});
}
