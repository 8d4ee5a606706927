// SPDX-License-Identifier: MIT
// What is in the machine, and the path that data takes between any two parts of it.
//
// Source: sysfs and procfs, as an ordinary user can read them. What only root can read,
// and no other source tells, is "not known", and a route says so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/error.hpp"

namespace sluice {

/// How data gets from one place to another, best first.
enum class path : uint8_t {
	same_memory,  ///< both are the same memory: nothing has to move
	xgmi,	      ///< by the link between the GPUs
	peer_to_peer, ///< directly from device to device below a PCI switch
	host_memory,  ///< one side is host memory, and the other has DMA to it
	host_bridge,  ///< from device to device through the CPU's host bridge
	by_cpu,	      ///< the CPU moves each byte, as for a software NIC
	staged,	      ///< to host memory first, and from there in a second step
	unreachable,  ///< not at all
};

/// Short name of @p how, e.g. "peer-to-peer".
const char *name(path how) noexcept;

/// Does a PCI function send requests for a peer up to the host bridge first?
enum class acs : uint8_t { not_known, direct, redirected };

struct pci_link {
	double gigatransfers = 0; ///< per second and lane; 0: not known
	unsigned lanes = 0, most_lanes = 0;

	/// Bytes per second in each direction, not counting packet overhead. 0: not
	/// known.
	double bytes_per_second() const noexcept;
};

struct pci_port {
	std::string address;
	acs redirect = acs::not_known;
	pci_link link; ///< to the device below it
};

struct pci_function {
	std::string address;	 ///< "0000:03:00.0"
	std::string host_bridge; ///< "pci0000:00"
	int numa_node = -1;
	int iommu_group = -1;	///< -1: no IOMMU translates for it
	std::string iommu_mode; ///< "identity", "DMA", "DMA-FQ"
	acs redirect = acs::not_known;
	pci_link link;
	/// The ports above it, up to the root port, which is the last.
	std::vector<pci_port> ports;
};

/// A route, the same in both directions.
struct route {
	path how = path::unreachable;
	std::vector<std::string> steps; ///< from the first to the second
	std::string limit;		///< what limits its rate
	double bytes_per_second = 0;	///< that limit; 0: not known
	std::vector<std::string> why_not_better;
	std::vector<std::string> remedies;  ///< empty: nothing can be done
	std::vector<std::string> not_known; ///< what could not be read
};

/// Something that data can be in or go through.
struct location {
	enum class kind : uint8_t { node, gpu, nic, disk } what;
	size_t index; ///< in nodes(), gpus(), nics() or disks()

	bool operator==(const location &) const = default;
};

class topology {
public:
	/// Host memory near some CPUs.
	struct node {
		int id = 0;
		std::string cpus; ///< "0-63"
		uint64_t bytes = 0;
		std::vector<unsigned> distances; ///< to each of nodes()
	};
	struct xgmi_link {
		size_t gpu = 0;	   ///< index in gpus()
		unsigned hops = 0; ///< 0: not known
		double bytes_per_second = 0;
	};
	struct gpu {
		/// "gpu0", by address: the number that device::open() takes. GPUs of
		/// other drivers come after those of amdgpu.
		std::string name;
		std::string driver;	 ///< "amdgpu"
		std::string render_node; ///< "/dev/dri/renderD128"
		std::string product;	 ///< "gfx942"; empty: not known
		pci_function pci;
		uint64_t vram_bytes = 0;
		uint64_t visible_vram_bytes = 0; ///< within the BAR
		uint32_t kfd_id = 0;		 ///< 0: amdkfd does not know it
		uint64_t hive = 0;		 ///< linked by xGMI; 0: none
		unsigned engines = 0;		 ///< SDMA, all kinds
		bool svm = false;		 ///< shares memory of processes
		std::vector<xgmi_link> links;

		/// Sluice moves data of no other GPUs.
		bool has_amdgpu() const { return driver == "amdgpu"; }
	};
	struct nic {
		std::string name; ///< "mlx5_0"
		std::string driver;
		std::string interface;		 ///< network interface of port 1
		std::optional<pci_function> pci; ///< none: it is software
		bool infiniband = false;
		bool active = false;
		double bits_per_second = 0; ///< of port 1; 0: not known
	};
	struct disk {
		std::string name; ///< "nvme0n1"
		std::string model;
		uint64_t bytes = 0;
		pci_function pci;
	};
	struct kernel {
		std::string release;
		bool symbols = false;	   ///< the three below are known
		bool p2pdma = false;	   ///< CONFIG_PCI_P2PDMA
		bool alias = false;	   ///< peers can reach device-private memory
		bool kfd_alias = false;	   ///< amdkfd lets them
		bool cpu_forwards = false; ///< between its root ports
		bool iommu = false;
	};

	/// Inspect the machine. A machine without GPUs, NICs or disks is not an error.
	/// errc::system if @p root has no sys directory.
	/// @param root where sys and proc are
	static result<topology> read(std::string_view root = "/");

	std::span<const node> nodes() const noexcept { return nodes_; }
	std::span<const gpu> gpus() const noexcept { return gpus_; }
	std::span<const nic> nics() const noexcept { return nics_; }
	std::span<const disk> disks() const noexcept { return disks_; }
	const kernel &running() const noexcept { return kernel_; }

	/// All of it, nodes first.
	std::vector<location> locations() const;

	/// @param wanted "node0", "gpu0", "mlx5_0", "nvme0n1", a PCI address or a
	///	render node. errc::device names what there is; errc::usage if it is empty.
	result<location> find(std::string_view wanted) const;

	/// "node0", "gpu0", "mlx5_0", "nvme0n1". Empty if there is no such location.
	std::string name_of(location where) const;

	/// The path that data will take between two of them, with this library on this
	/// kernel. errc::usage if a location does not exist.
	result<route> explain(location a, location b) const;

private:
	friend class topology_reader;
	friend class router;
	friend class peer_rules;
	struct host_bridge {
		std::string name;
		uint32_t vendor = 0, device = 0; ///< as P2PDMA takes them
	};

	std::vector<node> nodes_;
	std::vector<gpu> gpus_;
	std::vector<nic> nics_;
	std::vector<disk> disks_;
	std::vector<host_bridge> bridges_;
	kernel kernel_;
};

} // namespace sluice
