// SPDX-License-Identifier: MIT
#include "xfer/gpu_memory.hpp"

#include <array>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <format>
#include <fstream>
#include <poll.h>
#include <sstream>
#include <sys/ioctl.h>
#include <unistd.h>

#include <linux/kfd_ioctl.h>

#include "xfer/buffer.hpp"

namespace xfer {

namespace {

namespace fs = std::filesystem;

constexpr const char *topology = "/sys/class/kfd/kfd/topology/nodes";

struct Node {
	uint32_t gpu_id = 0;
	unsigned minor = 0;
	std::string address;
};

Node read_node(const fs::path &dir)
{
	std::ifstream id(dir / "gpu_id"), properties(dir / "properties");
	std::string key;
	uint64_t value;
	Node node;

	id >> node.gpu_id;
	while (properties >> key >> value)
		if (key == "drm_render_minor")
			node.minor = static_cast<unsigned>(value);
	std::error_code none;
	node.address = fs::canonical(std::format(
		"/sys/class/drm/renderD{}/device", node.minor), none)
		.filename();
	return node;
}

/// Those that are GPUs.
std::vector<Node> read_nodes()
{
	std::vector<Node> nodes;
	std::error_code none;

	for (const auto &dir : fs::directory_iterator(topology, none))
		if (auto node = read_node(dir); node.gpu_id)
			nodes.push_back(node);
	return nodes;
}

UniqueFd open_or_throw(const std::string &path, int flags)
{
	UniqueFd fd(::open(path.c_str(), flags | O_CLOEXEC));

	if (!fd)
		throw system_error(path, errno, errc::device);
	return fd;
}

std::string alias_line(const std::string &address)
{
	std::ifstream file("/sys/kernel/debug/hmm/alias");
	std::string line;

	while (std::getline(file, line))
		if (line.starts_with(address + " "))
			return line;
	return {};
}

/// A page map's entry of a page that is not present: where swap would be.
/// The kernel says "swapped" of device private pages as well, and gives their
/// frame number above the five bits of the swap type.
uint64_t frame_of(uint64_t entry)
{
	constexpr uint64_t swapped = uint64_t{1} << 62;

	if (!(entry & swapped))
		return DeviceMemory::nowhere;
	return (entry & ((uint64_t{1} << 55) - 1)) >> 5;
}

} // namespace

uint64_t alias_field(const std::string &line, const std::string &key)
{
	auto at = line.find(" " + key + "=");

	if (at == std::string::npos)
		return 0;
	return std::strtoull(line.c_str() + at + key.size() + 2, nullptr, 0);
}

// "5 <ns> -<pid> @<start>(<pages>) <from>-><to> ...", numbers in hex but the
// first two
uint64_t pages_leaving(const std::string &line, uint32_t gpu_id)
{
	unsigned event, from, to;
	unsigned long start, pages;
	long long ns;
	int pid;

	if (std::sscanf(line.c_str(), "%x %lld -%d @%lx(%lx) %x->%x", &event,
			&ns, &pid, &start, &pages, &from, &to) != 7)
		return 0;
	return event == KFD_SMI_EVENT_MIGRATE_START && from == gpu_id ? pages : 0;
}

GpuMemory::GpuMemory(const std::string &address)
	: DeviceMemory(address), kfd_(open_or_throw("/dev/kfd", O_RDWR)),
	  pagemap_(open_or_throw("/proc/self/pagemap", O_RDONLY))
{
	acquire_nodes();
	watch();
	find_pages();
	if (!alias_field(alias_line(name_), "published"))
		throw Error(errc::device, name_ +
			    ": peers do not reach its memory");
}

// On all nodes: KFD wants a process to have an address space on each of them
// before it takes queues away.
void GpuMemory::acquire_nodes()
{
	for (const auto &node : read_nodes()) {
		kfd_ioctl_acquire_vm_args arg{};

		nodes_.push_back(open_or_throw(std::format(
			"/dev/dri/renderD{}", node.minor), O_RDWR));
		arg.drm_fd = static_cast<uint32_t>(nodes_.back().get());
		arg.gpu_id = node.gpu_id;
		if (::ioctl(kfd_.get(), AMDKFD_IOC_ACQUIRE_VM, &arg) < 0)
			throw system_error(node.address + ": ACQUIRE_VM", errno,
					   errc::device);
		if (node.address == name_)
			gpu_id_ = node.gpu_id;
	}
	if (!gpu_id_)
		throw Error(errc::device, name_ + ": no GPU that KFD knows");
}

void GpuMemory::watch()
{
	uint64_t mask =
		KFD_SMI_EVENT_MASK_FROM_INDEX(KFD_SMI_EVENT_MIGRATE_START);
	kfd_ioctl_smi_events_args arg{};

	arg.gpuid = gpu_id_;
	if (::ioctl(kfd_.get(), AMDKFD_IOC_SMI_EVENTS, &arg) < 0)
		throw system_error(name_ + ": SMI_EVENTS", errno,
				   errc::device);
	events_ = UniqueFd(static_cast<int>(arg.anon_fd));
	if (::write(events_.get(), &mask, sizeof(mask)) < 0)
		throw system_error(name_ + ": events", errno, errc::device);
}

// The range that the private pages pretend to be at is no child of any other
// resource, unlike the BARs, which also go by the device's address.
void GpuMemory::find_pages()
{
	std::ifstream file("/proc/iomem");
	std::string line;

	while (std::getline(file, line)) {
		auto colon = line.find(" : ");

		if (line.starts_with(' ') || colon == std::string::npos ||
		    line.substr(colon + 3) != name_)
			continue;
		first_page_ = std::strtoull(line.c_str(), nullptr, 16);
	}
	if (!first_page_)
		throw Error(errc::device, name_ +
			    ": no device private memory in /proc/iomem");
}

// Drained at each look: the file holds a few pages of text, and loses what
// comes when it is full.
uint64_t GpuMemory::moved_out() const
{
	pollfd pfd{events_.get(), POLLIN, 0};
	std::array<char, 16384> text;

	while (::poll(&pfd, 1, 0) > 0 && pfd.revents & POLLIN) {
		ssize_t n = ::read(events_.get(), text.data(), text.size());
		if (n <= 0)
			break;
		std::istringstream lines(
			std::string(text.data(), static_cast<size_t>(n)));
		for (std::string line; std::getline(lines, line);)
			moved_out_ += pages_leaving(line, gpu_id_);
	}
	return moved_out_;
}

result<PeerInfo> GpuMemory::info() const
{
	std::string line = alias_line(name_);
	PeerInfo out;

	if (line.empty())
		return fail(errc::device, name_ + ": it has no alias");
	out.size = alias_field(line, "size");
	out.visible = alias_field(line, "published") ? out.size : 0;
	out.by_alias = alias_field(line, "mapped");
	for (const char *reason : {"unreachable", "invisible", "no_cpu",
				   "revoked", "map_failed"})
		out.fallbacks += alias_field(line, reason);
	out.moved_out = moved_out();
	return out;
}

result<void> GpuMemory::migrate(std::span<std::byte> range) const
{
	const std::array<kfd_ioctl_svm_attribute, 3> attributes{{
		{KFD_IOCTL_SVM_ATTR_PREFERRED_LOC, gpu_id_},
		{KFD_IOCTL_SVM_ATTR_ACCESS, gpu_id_},
		{KFD_IOCTL_SVM_ATTR_PREFETCH_LOC, gpu_id_}}};
	kfd_ioctl_svm_args args{};
	// the arguments end with the list, and its length is part of the number
	alignas(kfd_ioctl_svm_args) std::array<std::byte, sizeof(args) + sizeof(attributes)>
		cmd;
	constexpr unsigned long request = _IOC(
		_IOC_READ | _IOC_WRITE, AMDKFD_IOCTL_BASE,
		_IOC_NR(AMDKFD_IOC_SVM), sizeof(cmd));

	args.start_addr = reinterpret_cast<uintptr_t>(range.data());
	args.size = round_to_pages(range.size());
	args.op = KFD_IOCTL_SVM_OP_SET_ATTR;
	args.nattr = static_cast<uint32_t>(attributes.size());
	std::memcpy(cmd.data(), &args, sizeof(args));
	std::memcpy(cmd.data() + sizeof(args), attributes.data(),
		    sizeof(attributes));
	if (::ioctl(kfd_.get(), request, cmd.data()) < 0)
		return fail_errno(name_ + ": SVM prefetch", errno,
				  errc::device);
	return {};
}

result<std::vector<uint64_t>>
GpuMemory::offsets(std::span<std::byte> range) const
{
	std::vector<uint64_t> pages(round_to_pages(range.size()) / page_size);
	size_t bytes = pages.size() * sizeof(pages[0]);
	auto first = reinterpret_cast<uintptr_t>(range.data()) / page_size;
	ssize_t n = ::pread(pagemap_.get(), pages.data(), bytes,
			    static_cast<off_t>(first * sizeof(pages[0])));

	if (n != static_cast<ssize_t>(bytes))
		return fail_errno("/proc/self/pagemap", n < 0 ? errno : EIO,
				  errc::device);
	for (uint64_t &page : pages) {
		uint64_t frame = frame_of(page);

		page = frame == nowhere ? nowhere
					: frame * page_size - first_page_;
	}
	return pages;
}

result<void> GpuMemory::publish() const
{
	return {};	// the constructor has made sure
}

result<void> GpuMemory::publish_without_cpu() const
{
	return fail(errc::usage, name_ + ": its driver decides on the alias");
}

} // namespace xfer
