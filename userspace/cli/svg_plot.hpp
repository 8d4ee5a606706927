// SPDX-License-Identifier: MIT
// A plot as SVG, written by hand: sizes from left to right, each twice the previous
// one, and values upwards from 0.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace sluice::cli {

struct plot_line {
	std::string name;
	std::vector<std::pair<double, double>> points; ///< bytes and value
	bool dots_only = false;
};

struct plot_panel {
	std::string title; ///< what the values are, with their unit
	std::vector<plot_line> lines;
	bool tenfold = false; ///< logarithmic, in steps of ten
};

/// Panels below each other, and the environment under them.
std::string svg_plot(const std::string &title, const std::vector<plot_panel> &panels,
		     const std::string &environment);

} // namespace sluice::cli
