// The typed buffer: what is put in comes out, in the size and bits of the type.
#include "tools/reference/element_buffer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "tools/reference/narrow_float.h"

namespace pagejit {
namespace {

class ElementBufferTest : public testing::TestWithParam<DataType> {};

TEST_P(ElementBufferTest, TheFillsAreTwoDifferentNan) {
  const uint32_t nan = ElementBuffer::nan_code(GetParam());
  const uint32_t sentinel = ElementBuffer::sentinel_code(GetParam());
  EXPECT_NE(nan, sentinel);
  EXPECT_TRUE(std::isnan(ElementBuffer(GetParam(), 1, nan).at(0)));
  EXPECT_TRUE(std::isnan(ElementBuffer(GetParam(), 1, sentinel).at(0)));
  const ElementBuffer buffer(GetParam(), 3, nan);
  for (size_t i = 0; i < buffer.size_bytes(); ++i) EXPECT_EQ(buffer.address()[i], 0xff);
}

TEST_P(ElementBufferTest, AnElementIsRoundedAndItsNeighboursAreNotTouched) {
  ElementBuffer buffer(GetParam(), 5, ElementBuffer::sentinel_code(GetParam()));
  const ElementBuffer before = buffer;
  EXPECT_EQ(buffer, before);
  EXPECT_EQ(buffer.size(), 5);
  EXPECT_EQ(buffer.size_bytes(), static_cast<size_t>(5 * data_type_bytes(GetParam())));
  EXPECT_EQ(buffer.address(2) - buffer.address(), 2 * data_type_bytes(GetParam()));
  buffer.set(2, -1.3f);
  EXPECT_EQ(buffer.at(2), round_to_type(GetParam(), -1.3f));
  EXPECT_EQ(buffer.code(2), encode_float(GetParam(), -1.3f));
  EXPECT_NE(buffer, before);
  buffer.set_code(2, before.code(2));
  EXPECT_EQ(buffer, before);
}

INSTANTIATE_TEST_SUITE_P(Types, ElementBufferTest,
                         testing::Values(DataType::kFloat16, DataType::kBFloat16,
                                         DataType::kFloat32, DataType::kFloat8E4m3,
                                         DataType::kFloat8E5m2),
                         [](const testing::TestParamInfo<DataType>& test) {
                           return std::string(data_type_name(test.param));
                         });

TEST(Int4BufferTest, TwoElementsShareAByteTheEvenOneInItsLowHalf) {
  ElementBuffer buffer(DataType::kInt4, 6, ElementBuffer::sentinel_code(DataType::kInt4));
  EXPECT_EQ(buffer.size(), 6);
  EXPECT_EQ(buffer.size_bytes(), 3u);
  EXPECT_EQ(buffer.address(5) - buffer.address(), 2);
  buffer.set(2, -3.4f);
  buffer.set(5, 7.9f);
  EXPECT_EQ(buffer.address()[0], 0x55);
  EXPECT_EQ(buffer.address()[1], 0x5d);
  EXPECT_EQ(buffer.address()[2], 0x75);
  EXPECT_EQ(buffer.at(2), -3.0f);
  EXPECT_EQ(buffer.at(3), 5.0f);
  EXPECT_EQ(buffer.at(5), 7.0f);
  EXPECT_EQ(buffer.code(2), 0xdu);
}

}  // namespace
}  // namespace pagejit
