// SPDX-License-Identifier: MIT
// Handles of groups, shared by the parts of the C API about groups.
#pragma once

#include "c_api.hpp"
#include "sluice/group.hpp"

struct sluice_processes {
	struct inside {
		std::shared_ptr<sluice::c::ring> in;
		sluice::processes it;
	};
	std::shared_ptr<inside> it;
};

struct sluice_group {
	/// Destroyed in reverse order: the GPUs after what refers to them.
	struct inside {
		std::shared_ptr<sluice::c::ring> in;
		std::vector<std::shared_ptr<sluice::c::gpu>> gpus;
		sluice::group it;
	};
	std::shared_ptr<inside> it;
};
