// SPDX-License-Identifier: MIT
// Facts that only the running kernel and its devices can tell.
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <liburing.h>
#include <linux/kfd_ioctl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <infiniband/verbs.h>

#include "command.hpp"
#include "doctor.hpp"
#include "env.hpp"
#include "odp_trial.hpp"
#include "sluice/unique_fd.hpp"
#include "sysfs.hpp"

namespace sluice::cli {

namespace {

int ask_uring()
{
	io_uring ring;
	int err = io_uring_queue_init(4, &ring, 0);

	if (err == 0)
		io_uring_queue_exit(&ring);
	return -err;
}

/// Whether the kernel lets this user pin more than the limit: a capability that does not
/// count in a user namespace, so try it with no limit left.
bool may_pin_more(rlimit limit)
{
	rlimit none{.rlim_cur = 0, .rlim_max = limit.rlim_max};
	const char here = 0;

	if (::setrlimit(RLIMIT_MEMLOCK, &none) < 0)
		return false;
	bool may = ::mlock(&here, 1) == 0;
	if (may)
		::munlock(&here, 1);
	::setrlimit(RLIMIT_MEMLOCK, &limit);
	return may;
}

unique_fd open_device(const char *path, int &err)
{
	unique_fd fd(::open(path, O_RDWR | O_CLOEXEC));

	err = fd ? 0 : errno;
	return fd;
}

void ask_kfd(facts &to)
{
	int err;
	unique_fd kfd = open_device("/dev/kfd", err);
	// A negative value only queries the mode.
	kfd_ioctl_set_xnack_mode_args mode{.xnack_enabled = -1};

	to.kfd_errno = err;
	if (kfd && ::ioctl(kfd.get(), AMDKFD_IOC_SET_XNACK_MODE, &mode) == 0)
		to.xnack = mode.xnack_enabled != 0;
}

gpu_facts ask_gpu(const topology::gpu &g)
{
	gpu_facts found;
	int err;
	unique_fd node = open_device(g.render_node.c_str(), err);
	drm_amdgpu_info_sdma_batch batch{};
	drm_amdgpu_info query{};

	found.open_errno = err;
	if (!node || !g.has_amdgpu())
		return found;
	query.return_pointer = reinterpret_cast<uintptr_t>(&batch);
	query.return_size = sizeof(batch);
	query.query = AMDGPU_INFO_SDMA_BATCH;
	// A kernel without batches does not know the query.
	if (::ioctl(node.get(), DRM_IOCTL_AMDGPU_INFO, &query) == 0)
		found.batch = batch;
	else if (errno == EINVAL)
		found.batch.emplace();
	return found;
}

bool on_demand(ibv_context *card)
{
	constexpr uint32_t wanted = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV |
				    IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ;
	ibv_device_attr_ex attr{};

	return ibv_query_device_ex(card, nullptr, &attr) == 0 &&
	       (attr.odp_caps.general_caps & IBV_ODP_SUPPORT) &&
	       (attr.odp_caps.per_transport_caps.rc_odp_caps & wanted) == wanted;
}

/// A driver that supports dma-bufs answers EBADF to the file descriptor -1.
std::optional<bool> takes_dmabufs(ibv_context *card)
{
	ibv_pd *domain = ibv_alloc_pd(card);

	if (!domain)
		return std::nullopt;
	errno = 0;
	ibv_mr *none = ibv_reg_dmabuf_mr(domain, 0, 4096, 0, -1, 0);
	int err = errno;
	if (none)
		ibv_dereg_mr(none);
	ibv_dealloc_pd(domain);
	return err == EBADF;
}

nic_facts ask_nic(ibv_device *device)
{
	nic_facts found;

	errno = 0;
	ibv_context *card = ibv_open_device(device);
	found.open_errno = card ? 0 : errno ? errno : EIO;
	if (!card)
		return found;
	found.on_demand = on_demand(card);
	if (*found.on_demand && detail::is_soft_roce(ibv_get_device_name(device)) &&
	    detail::try_odp(card) == detail::odp_verdict::wrong) {
		found.on_demand = false;
		found.on_demand_wrong = true;
	}
	found.dmabuf = takes_dmabufs(card);
	ibv_close_device(card);
	return found;
}

void ask_nics(facts &to)
{
	int n = 0;
	ibv_device **list = ibv_get_device_list(&n);

	for (size_t i = 0; i < to.nics.size(); i++) {
		// If not found: its driver's library or its device file is missing.
		to.nics[i].open_errno = ENODEV;
		for (int d = 0; d < n; d++)
			if (to.machine.nics()[i].name == ibv_get_device_name(list[d]))
				to.nics[i] = ask_nic(list[d]);
	}
	if (list)
		ibv_free_device_list(list);
}

std::map<std::string, std::string> ask_environment()
{
	std::map<std::string, std::string> found;

	for (const std::string &library : libraries())
		for (const variable &v : variables_for(library, "any", true))
			if (const char *value = std::getenv(v.name.c_str()))
				found[v.name] = value;
	return found;
}

/// The word in brackets of "always [madvise] never".
std::string chosen(const std::string &words)
{
	size_t first = words.find('['), last = words.find(']');

	return first == words.npos || last == words.npos
		       ? std::string()
		       : words.substr(first + 1, last - first - 1);
}

} // namespace

result<facts> ask(const settings &with)
{
	sysfs files(with.root);
	facts found;
	auto machine = topology::read(with.root);

	if (!machine)
		return std::unexpected(machine.error());
	found.machine = std::move(*machine);
	found.gpus.resize(found.machine.gpus().size());
	found.nics.resize(found.machine.nics().size());
	found.huge_pages =
		chosen(files.text("sys/kernel/mm/transparent_hugepage/enabled"));
	found.numa_balancing = files.number("proc/sys/kernel/numa_balancing");
	if (!with.live())
		return found;

	rlimit limit;
	found.uring_errno = ask_uring();
	if (::getrlimit(RLIMIT_MEMLOCK, &limit) == 0) {
		found.memlock =
			limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur;
		found.may_pin_more = may_pin_more(limit);
	}
	ask_kfd(found);
	for (size_t i = 0; i < found.gpus.size(); i++)
		found.gpus[i] = ask_gpu(found.machine.gpus()[i]);
	ask_nics(found);
	found.environment = ask_environment();
	return found;
}

} // namespace sluice::cli
