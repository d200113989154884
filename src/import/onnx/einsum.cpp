// SPDX-License-Identifier: Apache-2.0
// Einsum: operands are joined from the left, each pair by one BATCH_MATMUL between transposes.
#include <algorithm>
#include <map>

#include "import/onnx/converter.h"

namespace reef::import {
namespace {

// A tensor whose axes bear labels. Axes of an ellipsis are labelled 'A', 'B', ... from the right: equations use small
// letters only here (capitals are moved out of the way).
struct Labelled {
  Id id = kAbsent;
  std::string labels;
};

struct Equation {
  std::vector<std::string> operands;
  std::string result;
};

constexpr char kEllipsisLabel = '\x80';  // and the following, for its axes counted from the right

std::string with_ellipsis(const std::string& term, int axes) {
  std::string labels;
  for (std::size_t i = 0; i < term.size(); ++i) {
    if (term[i] == '.') {
      for (int k = axes; k-- > 0;) labels += static_cast<char>(kEllipsisLabel + k);
      i += 2;
    } else {
      labels += term[i];
    }
  }
  return labels;
}

Status check_term(const std::string& term) {
  std::size_t dots = 0;
  for (const char c : term) {
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    REEF_REQUIRE(is_letter || c == '.', "attribute equation has the letter '{}'", c);
    dots += c == '.';
  }
  REEF_REQUIRE(dots == 0 || (dots == 3 && term.find("...") != std::string::npos), "attribute equation has stray dots");
  return ok_status();
}

Result<Equation> read_equation(const NodeContext& ctx) {
  std::string text = ctx.string_attribute("equation", "");
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  const std::size_t arrow = text.find("->");
  const std::string left = text.substr(0, arrow);
  std::vector<std::string> terms(1);
  for (const char c : left) {
    if (c == ',') {
      terms.emplace_back();
    } else {
      terms.back() += c;
    }
  }
  REEF_REQUIRE(static_cast<int>(terms.size()) == ctx.input_count(), "attribute equation has {} terms for {} inputs",
               terms.size(), ctx.input_count());
  Equation equation;
  int widest = 0;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    REEF_RETURN_IF_ERROR(check_term(terms[i]));
    const bool has_ellipsis = terms[i].find('.') != std::string::npos;
    const int letters = static_cast<int>(terms[i].size()) - (has_ellipsis ? 3 : 0);
    const int axes = ctx.b.rank(ctx.in(static_cast<int>(i))) - letters;
    REEF_REQUIRE(axes == 0 || (has_ellipsis && axes > 0 && axes < 16), "term '{}' does not fit input {}", terms[i], i);
    widest = std::max(widest, axes);
    equation.operands.push_back(with_ellipsis(terms[i], axes));
  }
  if (arrow != std::string::npos) {
    const std::string right = text.substr(arrow + 2);
    REEF_RETURN_IF_ERROR(check_term(right));
    equation.result = with_ellipsis(right, widest);
    return equation;
  }
  // Without an arrow: the ellipsis, then letters that stand once, in order.
  std::map<char, int> counts;
  for (const std::string& term : equation.operands) {
    for (const char c : term) ++counts[c];
  }
  for (int k = widest; k-- > 0;) equation.result += static_cast<char>(kEllipsisLabel + k);
  for (const auto& [label, count] : counts) {
    if (count == 1 && label >= 'A' && label <= 'z') equation.result += label;
  }
  return equation;
}

Labelled permuted(GraphBuilder& b, const Labelled& x, const std::string& labels) {
  std::vector<int> order;
  for (const char c : labels) order.push_back(static_cast<int>(x.labels.find(c)));
  return {transpose(b, x.id, order), labels};
}

// A label that stands twice means the diagonal.
Result<Labelled> without_repeats(GraphBuilder& b, Labelled x) {
  for (std::size_t i = 0; i < x.labels.size(); ++i) {
    const std::size_t other = x.labels.find(x.labels[i], i + 1);
    if (other == std::string::npos) continue;
    const std::int32_t size = b.dim(x.id, static_cast<int>(i));
    REEF_REQUIRE(size == b.dim(x.id, static_cast<int>(other)) && size > 0, "axes with one label have different sizes");
    std::vector<int> order;
    std::string rest;
    Dims dims;
    for (std::size_t k = 0; k < x.labels.size(); ++k) {
      if (k == i || k == other) continue;
      order.push_back(static_cast<int>(k));
      rest += x.labels[k];
      dims.push_back(b.dim(x.id, static_cast<int>(k)));
    }
    order.push_back(static_cast<int>(i));
    order.push_back(static_cast<int>(other));
    const std::int64_t outer = ir::Shape(shape_from(dims)).elements();
    const Id rows = reshape(b, transpose(b, x.id, order), {outer, std::int64_t{size} * size});
    const Id diagonal = strided_slice(b, rows, {0, 0}, {outer, std::int64_t{size} * size}, {1, size + 1});
    dims.push_back(size);
    x = {reshape(b, diagonal, dims), rest + x.labels[i]};
    i = static_cast<std::size_t>(-1);  // look again from the start
  }
  return x;
}

// Sums over labels that are not in `wanted`.
Labelled summed(GraphBuilder& b, const Labelled& x, const std::string& wanted) {
  Dims axes;
  std::string labels;
  for (std::size_t i = 0; i < x.labels.size(); ++i) {
    if (wanted.find(x.labels[i]) == std::string::npos) {
      axes.push_back(static_cast<std::int64_t>(i));
    } else {
      labels += x.labels[i];
    }
  }
  return axes.empty() ? x : Labelled{reduce(b, Op::SUM, x.id, axes, false), labels};
}

Dims sizes_of(const GraphBuilder& b, const Labelled& x, const std::string& labels) {
  Dims dims;
  for (const char c : labels) dims.push_back(b.dim(x.id, static_cast<int>(x.labels.find(c))));
  return dims;
}

std::int64_t product(const Dims& dims) {
  std::int64_t result = 1;
  for (const std::int64_t dim : dims) result *= dim;
  return result;
}

// Both operands over the labels in `wanted`, contracted over those in both that are not.
Result<Labelled> joined(GraphBuilder& b, Labelled x, Labelled y, const std::string& wanted) {
  x = summed(b, x, wanted + y.labels);
  y = summed(b, y, wanted + x.labels);
  std::string batch, contracted, left, right;
  for (const char c : x.labels) {
    if (y.labels.find(c) == std::string::npos) {
      left += c;
    } else {
      (wanted.find(c) != std::string::npos ? batch : contracted) += c;
    }
  }
  for (const char c : y.labels) {
    if (x.labels.find(c) == std::string::npos) right += c;
  }
  for (const char c : batch + contracted) {
    const Dims a = sizes_of(b, x, std::string(1, c)), d = sizes_of(b, y, std::string(1, c));
    if (a != d)
      return unsupported("attribute equation: operands broadcast along an axis they share, which is not converted");
  }
  const Dims batch_dims = sizes_of(b, x, batch), left_dims = sizes_of(b, x, left), right_dims = sizes_of(b, y, right);
  const std::int64_t k = product(sizes_of(b, x, contracted));
  const Id a = reshape(b, permuted(b, x, batch + left + contracted).id, {product(batch_dims), product(left_dims), k});
  const Id c = reshape(b, permuted(b, y, batch + contracted + right).id, {product(batch_dims), k, product(right_dims)});
  Dims dims = batch_dims;
  dims.insert(dims.end(), left_dims.begin(), left_dims.end());
  dims.insert(dims.end(), right_dims.begin(), right_dims.end());
  return Labelled{reshape(b, matmul(b, a, c), dims), batch + left + right};
}

}  // namespace

Status convert_einsum(NodeContext& ctx, GraphBuilder& b) {
  REEF_RETURN_IF_ERROR(ctx.require_inputs(ctx.input_count()));
  REEF_REQUIRE(ctx.input_count() >= 1, "it has no inputs");
  REEF_ASSIGN_OR_RETURN(const Equation equation, read_equation(ctx));
  std::vector<Labelled> operands;
  for (int i = 0; i < ctx.input_count(); ++i) {
    const Id x = cast(b, ctx.in(i), ir::DataType::kFloat32);
    REEF_ASSIGN_OR_RETURN(Labelled each, without_repeats(b, {x, equation.operands[at(i)]}));
    operands.push_back(std::move(each));
  }
  Labelled result = operands[0];
  for (std::size_t i = 1; i < operands.size(); ++i) {
    std::string wanted = equation.result;
    for (std::size_t k = i + 1; k < operands.size(); ++k) wanted += operands[k].labels;
    REEF_ASSIGN_OR_RETURN(result, joined(b, result, operands[i], wanted));
  }
  result = summed(b, result, equation.result);
  for (const char c : equation.result) {
    REEF_REQUIRE(std::count(equation.result.begin(), equation.result.end(), c) == 1 &&
                     result.labels.find(c) != std::string::npos,
                 "attribute equation: a letter of the result stands twice or in no term");
  }
  return ctx.give(cast(b, permuted(b, result, equation.result).id, b.type(ctx.in(0))));
}

}  // namespace reef::import
