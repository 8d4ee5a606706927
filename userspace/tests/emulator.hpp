// SPDX-License-Identifier: MIT
// Access to emulated GPUs, for tests that disturb and watch them.
#pragma once

#include <fcntl.h>
#include <filesystem>
#include <format>
#include <fstream>
#include <string>
#include <unistd.h>

#include <gtest/gtest.h>

#include "sluice/unique_fd.hpp"

namespace sluice {

/// The emulator's control socket, which is a port of the guest.
class emulator {
public:
	emulator()
	{
		namespace fs = std::filesystem;
		const fs::path ports = "/sys/class/virtio-ports";
		std::error_code none;

		for (auto &port : fs::directory_iterator(ports, none)) {
			std::string name;

			std::getline(std::ifstream(port.path() / "name"), name);
			if (name == "sluice.emu")
				port_ = unique_fd(::open(
					("/dev/" / port.path().filename()).c_str(),
					O_RDWR | O_CLOEXEC));
		}
	}
	bool there() const { return bool(port_); }

	/// @param gpu the emulator's number, which may differ from the driver's
	/// @return its answer, which ends with "ok"
	std::string tell(unsigned gpu, const std::string &what)
	{
		std::string command = std::format("gpu{} {}\n", gpu, what), answer;

		EXPECT_EQ(::write(port_.get(), command.data(), command.size()),
			  static_cast<ssize_t>(command.size()));
		while (!answer.ends_with("ok\n") && !answer.contains("error: ")) {
			char text[512];
			ssize_t n = ::read(port_.get(), text, sizeof(text));

			if (n <= 0)
				break;
			answer.append(text, static_cast<size_t>(n));
		}
		EXPECT_TRUE(answer.ends_with("ok\n")) << what << ": " << answer;
		return answer;
	}
	/// The value of a GPU's counter of this name.
	long count(unsigned gpu, const std::string &name)
	{
		std::string stats = tell(gpu, "stats"), key = "\"" + name + "\":";
		size_t at = stats.find(key);

		EXPECT_NE(at, stats.npos) << stats;
		return at == stats.npos ? -1
					: std::atol(stats.c_str() + at + key.size());
	}

private:
	unique_fd port_;
};

} // namespace sluice
