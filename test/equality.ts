import { isArrayBufferView } from 'node:util/types'
import { expect } from 'vitest'

// Equal samples and files are compared as bytes. The runner compares property by property, which takes a hundred times
// as long; it does so only for unequal ones, and shows the difference.
expect.addEqualityTesters([
  (one: unknown, other: unknown) =>
    isArrayBufferView(one) &&
    isArrayBufferView(other) &&
    Object.getPrototypeOf(one) === Object.getPrototypeOf(other) &&
    bytesOf(one).equals(bytesOf(other))
      ? true
      : undefined,
])

const bytesOf = ({ buffer, byteOffset, byteLength }: ArrayBufferView) => Buffer.from(buffer, byteOffset, byteLength)
