// SPDX-License-Identifier: MIT
// Migrations of pages, from amdkfd's events.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <sys/types.h>

#include "engine.hpp"
#include "gpu_node.hpp"
#include "sluice/device.hpp"

namespace sluice::detail {

/// The start of a migration. GPUs are amdkfd's gpu_id, the host is 0.
struct migration {
	pid_t process;
	uint64_t pages;
	uint32_t from, to;
};

/// Parse a line of the file of events; nothing: it is not about one.
std::optional<migration> parse_migration(std::string_view line) noexcept;

/// Count the migrations of @p process in @p text, from and to the GPU @p gpu_id.
void count_migrations(device_counters &counters, std::string_view text, pid_t process,
		      uint32_t gpu_id) noexcept;

/// A file of the events. Reading does not wait.
result<unique_fd> open_migrations(const gpu_node &node);

/// Reads events as they come. The kernel has room for 8 KiB of text, some hundred
/// events, and silently drops what comes when that is full. Nothing else takes events
/// out, so if some were dropped, the text is that long at the next look.
class migration_watch : private request {
public:
	static result<std::unique_ptr<migration_watch>> open(engine &ring,
							     gpu_node &node);
	~migration_watch();

	/// Including all events that are there by now.
	device_counters counters() noexcept;

private:
	migration_watch(engine &ring, unique_fd events, uint32_t gpu_id) noexcept;
	void look() noexcept;

	static constexpr size_t room = 8192, longest_event = 96;

	engine &ring_;
	unique_fd events_;
	uint32_t gpu_id_;
	bool watching_ = true, ending_ = false;
	device_counters counters_;
	std::array<char, room> text_;
};

} // namespace sluice::detail
