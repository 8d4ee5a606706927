// SPDX-License-Identifier: MIT
// Memory to move data from and to.
//
// A buffer has one address, the same for the CPU and for the GPUs that it is mapped on.
// The class is a counted reference: every user of the memory (registrations, operations in
// flight) holds one, so memory that a device may still write to cannot be freed. GPUs that
// it is attached to hold none: their mappings end with it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "sluice/error.hpp"
#include "sluice/unique_fd.hpp"

namespace sluice {

inline constexpr size_t page_size = 4096;

/// @p n rounded up to whole pages.
constexpr size_t round_to_pages(size_t n)
{
	return (n + page_size - 1) & ~(page_size - 1);
}

/// The kind of memory of a buffer.
enum class memory : uint8_t {
	host, ///< anonymous memory of the process
	svm,  ///< the same, shared with a GPU: it migrates to video memory and back
	vram, ///< video memory, allocated as such
};

const char *name(memory kind) noexcept;

namespace detail {

/// What a device has made of a memory_block for itself, e.g. a mapping. It is destroyed
/// with the memory, just before it.
class attachment {
public:
	explicit attachment(const void *owner) noexcept : owner_(owner) {}
	attachment(const attachment &) = delete;
	attachment &operator=(const attachment &) = delete;
	virtual ~attachment() = default;

private:
	friend class memory_block;
	const void *owner_;
	std::unique_ptr<attachment> next_;
};

/// What a buffer refers to. Derived classes free what they own in their destructor.
class memory_block {
public:
	memory_block(memory kind, std::byte *data, size_t size) noexcept
		: kind_(kind), data_(data), size_(size)
	{
	}
	memory_block(const memory_block &) = delete;
	memory_block &operator=(const memory_block &) = delete;
	virtual ~memory_block() = default;

	void get() noexcept { users_.fetch_add(1, std::memory_order_relaxed); }
	void put() noexcept
	{
		if (users_.fetch_sub(1, std::memory_order_acq_rel) != 1)
			return;
		while (attached_)
			attached_ = std::move(attached_->next_);
		delete this;
	}
	unsigned users() const noexcept
	{
		return users_.load(std::memory_order_relaxed);
	}

	/// The descriptor of this memory's dma-buf, created on demand; -1: it has none.
	virtual int dmabuf() noexcept { return -1; }

	/// May the CPU touch it?
	virtual bool mapped() const noexcept { return true; }

	void attach(std::unique_ptr<attachment> made) noexcept
	{
		std::lock_guard guard(lock_);

		made->next_ = std::move(attached_);
		attached_ = std::move(made);
	}
	/// What @p owner has attached, or nullptr.
	attachment *attached(const void *owner) noexcept
	{
		std::lock_guard guard(lock_);
		attachment *a = attached_.get();

		while (a && a->owner_ != owner)
			a = a->next_.get();
		return a;
	}

	memory kind_;
	std::byte *data_;
	size_t size_;

private:
	std::atomic<unsigned> users_{0};
	std::mutex lock_;
	std::unique_ptr<attachment> attached_;
};

} // namespace detail

class slice;

class buffer {
public:
	struct host_options {
		int numa_node = -1;	///< to be near; -1: any
		bool huge_pages = true; ///< ask for them; not guaranteed
	};

	/// No memory. It can only be assigned to.
	buffer() noexcept = default;

	/// Zeroed memory of the process. Pages are allocated as they are touched, or,
	/// with a node, at once. errc::usage if @p size is 0 or no address space has as
	/// much; errc::system without
	/// memory; errc::device if there is no such node.
	/// @param size bytes, rounded up to whole pages
	static result<buffer> host(size_t size, host_options options);
	static result<buffer> host(size_t size) { return host(size, {}); }

	explicit buffer(detail::memory_block *block) noexcept : block_(block)
	{
		if (block_)
			block_->get();
	}
	buffer(const buffer &other) noexcept : buffer(other.block_) {}
	buffer(buffer &&other) noexcept : block_(std::exchange(other.block_, nullptr))
	{
	}
	buffer &operator=(buffer other) noexcept
	{
		std::swap(block_, other.block_);
		return *this;
	}
	~buffer()
	{
		if (block_)
			block_->put();
	}

	explicit operator bool() const noexcept { return block_; }
	std::byte *data() const noexcept { return block_->data_; }
	uint64_t address() const noexcept
	{
		return reinterpret_cast<uintptr_t>(data());
	}
	/// Bytes.
	size_t size() const noexcept { return block_ ? block_->size_ : 0; }
	memory kind() const noexcept { return block_->kind_; }
	/// For the CPU. Touching SVM memory that is in a GPU brings it back.
	std::span<std::byte> bytes() const noexcept { return {data(), size()}; }

	/// Part of it. @p offset + @p length must not be above size().
	slice part(size_t offset, size_t length) const noexcept;

	/// May the CPU touch bytes()? Not if only part of a GPU's video memory is
	/// visible to it.
	bool mapped() const noexcept { return block_ && block_->mapped(); }

	/// A dma-buf of all of it, for another process or driver. The caller owns the
	/// descriptor, which keeps the memory alive, but not this object.
	/// errc::unsupported if it is not video memory; errc::device.
	result<unique_fd> export_dmabuf() const;

	/// How many references there are; one if nothing else uses the memory.
	unsigned users() const noexcept { return block_ ? block_->users() : 0; }

	/// The NUMA node of each page (move_pages(2)), -1 for a page that is not
	/// present or is in a device. errc::system.
	result<std::vector<int>> nodes() const;

	/// Are all pages on @p node? errc::device names the first that is not.
	result<void> verify_node(int node) const;

	detail::memory_block *block() const noexcept { return block_; }

private:
	detail::memory_block *block_ = nullptr;
};

/// Bytes of a buffer, with a reference to it.
class slice {
public:
	slice() noexcept = default;
	slice(const buffer &all) noexcept : slice(all, 0, all.size()) {}
	slice(const buffer &of, size_t offset, size_t length) noexcept
		: buffer_(of), offset_(offset), length_(length)
	{
	}

	const buffer &of() const noexcept { return buffer_; }
	size_t offset() const noexcept { return offset_; }
	size_t size() const noexcept { return length_; }
	std::byte *data() const noexcept { return buffer_.data() + offset_; }
	uint64_t address() const noexcept { return buffer_.address() + offset_; }
	std::span<std::byte> bytes() const noexcept { return {data(), length_}; }
	slice part(size_t offset, size_t length) const noexcept
	{
		return {buffer_, offset_ + offset, length};
	}
	/// Does it lie inside its buffer?
	bool valid() const noexcept
	{
		return offset_ <= buffer_.size() && length_ <= buffer_.size() - offset_;
	}

private:
	buffer buffer_;
	size_t offset_ = 0, length_ = 0;
};

inline slice buffer::part(size_t offset, size_t length) const noexcept
{
	return {*this, offset, length};
}

} // namespace sluice
