import { isArrayBufferView } from 'node:util/types'
import { expect } from 'vitest'

// Samples and files that are equal are compared as bytes. The runner compares one property after the other, a hundred
// times as long; it does where they are not, and shows where.
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
