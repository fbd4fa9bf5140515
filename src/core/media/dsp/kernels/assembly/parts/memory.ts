/** Bytes of a float, of a double, and of a vector of four floats. */
export const float: usize = 4
export const double: usize = 8
export const vector: usize = 16

/** The address of a float by its offset: callers count floats, the memory counts bytes. */
export function at(offset: usize): usize {
  return offset * float
}
