// The middle of measured values and how far they scatter. Thread-safety: free functions without
// state.
#pragma once

#include <vector>

namespace pagejit {

// Between two neighbours their mean. No values: 0.
double median(std::vector<double> values);
// The distance between the quartiles over the median: what half of the values lie within. Quartiles
// lie between neighbours by their distance. Of less than two values: 0.
double relative_spread(std::vector<double> values);

}  // namespace pagejit
