// SPDX-License-Identifier: MIT
#include "svg_plot.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <format>
#include <map>

#include "text.hpp"

namespace sluice::cli {

namespace {

constexpr double width = 720, panel_height = 320, left = 80, right = 190, top = 40,
		 below = 50;
constexpr std::array colours = {"#1b6ca8", "#c0392b", "#27824a",
				"#8e44ad", "#b9770e", "#555555"};

std::string escaped(const std::string &text)
{
	std::string all;

	for (char c : text)
		all += c == '<'	  ? "&lt;"
		       : c == '>' ? "&gt;"
		       : c == '&' ? "&amp;"
		       : c == '"' ? "&quot;"
				  : std::string(1, c);
	return all;
}

std::string words(double x, double y, const std::string &text,
		  const char *anchor = "start", const char *more = "")
{
	return std::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>"
			   "{}</text>\n",
			   x, y, anchor, more, escaped(text));
}

std::string segment(double x1, double y1, double x2, double y2)
{
	return std::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" "
			   "y2=\"{:.1f}\" stroke=\"#ddd\"/>\n",
			   x1, y1, x2, y2);
}

/// Maps values to positions in one panel.
class axes {
public:
	axes(const plot_panel &panel, double offset);

	double x(double bytes) const;
	double y(double value) const;
	std::string grid() const;

private:
	std::string size_marks() const;
	std::string value_marks() const;

	const plot_panel &panel_;
	double offset_, low_ = 0, high_ = 0, least_ = 0, most_ = 0;
};

/// 1, 2 or 5 times a power of ten, not below @p value.
double round_up(double value)
{
	double unit = std::pow(10, std::floor(std::log10(value)));

	for (double factor : {1.0, 2.0, 5.0})
		if (value <= factor * unit)
			return factor * unit;
	return 10 * unit;
}

axes::axes(const plot_panel &panel, double offset) : panel_(panel), offset_(offset)
{
	bool first = true;

	for (const plot_line &line : panel.lines)
		for (auto [bytes, value] : line.points) {
			double size = std::log2(bytes);

			low_ = first ? size : std::min(low_, size);
			high_ = first ? size : std::max(high_, size);
			least_ = first ? value : std::min(least_, value);
			most_ = first ? value : std::max(most_, value);
			first = false;
		}
	if (panel.tenfold && least_ > 0) {
		least_ = std::pow(10, std::floor(std::log10(least_)));
		most_ = std::pow(10, std::ceil(std::log10(most_)));
		if (most_ <= least_)
			most_ = 10 * least_;
	} else {
		least_ = 0;
		most_ = most_ > 0 ? round_up(most_) : 1;
	}
}

double axes::x(double bytes) const
{
	double part = high_ > low_ ? (std::log2(bytes) - low_) / (high_ - low_) : 0.5;

	return left + part * (width - left - right);
}

double axes::y(double value) const
{
	double part = least_ > 0
			      ? std::log10(value / least_) / std::log10(most_ / least_)
			      : value / most_;

	return offset_ + panel_height - below - part * (panel_height - below - top);
}

std::string axes::size_marks() const
{
	std::string all;
	double step = std::max(1.0, std::ceil((high_ - low_) / 8));

	for (double size = std::ceil(low_); size <= high_ + 1e-9; size += step) {
		double at = x(std::exp2(size));

		all += segment(at, offset_ + top, at, offset_ + panel_height - below);
		all += words(at, offset_ + panel_height - below + 18,
			     size_text(static_cast<uint64_t>(std::exp2(size))),
			     "middle");
	}
	return all;
}

std::string axes::value_marks() const
{
	std::string all;
	auto mark = [&](double value) {
		all += segment(left, y(value), width - right, y(value));
		all += words(left - 8, y(value) + 4, std::format("{:.6g}", value),
			     "end");
	};

	if (least_ > 0)
		for (double value = least_; value <= most_ * 1.001; value *= 10)
			mark(value);
	else
		for (int i = 0; i <= 5; i++)
			mark(most_ * i / 5);
	return all;
}

std::string axes::grid() const
{
	return words(left, offset_ + top - 12, panel_.title, "start",
		     " font-weight=\"bold\"") +
	       value_marks() + size_marks();
}

std::string drawn(const plot_line &line, const axes &on, size_t number, double offset)
{
	const char *colour = colours[number % colours.size()];
	std::string points, dots;
	double key = offset + top + 10 + 20 * static_cast<double>(number);

	for (auto [bytes, value] : line.points) {
		if (!line.dots_only)
			points +=
				std::format("{:.1f},{:.1f} ", on.x(bytes), on.y(value));
		dots += std::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" "
				    "fill=\"{}\"/>\n",
				    on.x(bytes), on.y(value), line.dots_only ? 5 : 3,
				    colour);
	}
	return std::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" "
			   "stroke-width=\"2\"/>\n{}"
			   "<rect x=\"{}\" y=\"{:.1f}\" width=\"12\" height=\"12\" "
			   "fill=\"{}\"/>\n",
			   points, colour, dots, width - right + 16, key - 10, colour) +
	       words(width - right + 34, key, line.name);
}

} // namespace

std::string svg_plot(const std::string &title, const std::vector<plot_panel> &panels,
		     const std::string &environment)
{
	double height = 70 + panel_height * static_cast<double>(panels.size());
	std::string all = std::format(
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" "
		"height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
		"font-family=\"sans-serif\" font-size=\"12\">\n"
		"<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
		width, height);
	double offset = 40;

	all += words(left, 26, title, "start", " font-size=\"15\"");
	for (const plot_panel &panel : panels) {
		axes on(panel, offset);
		size_t number = 0;

		all += on.grid();
		for (const plot_line &line : panel.lines)
			all += drawn(line, on, number++, offset);
		offset += panel_height;
	}
	return all + words(left, height - 12, environment, "start", " fill=\"#555\"") +
	       "</svg>\n";
}

} // namespace sluice::cli
