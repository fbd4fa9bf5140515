import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { checkInput } from '../../src/core/engine/workflow/check-input.js'
import { nearest } from '../../src/core/engine/workflow/nearest.js'

describe('what is wrong with a value', () => {
  test.each<[z.ZodType, unknown, string]>([
    [z.string(), undefined, 'is missing: expected a text'],
    [z.record(z.string(), z.unknown()), undefined, 'is missing: expected an object'],
    [z.enum(['a', 'b']), undefined, 'is missing: expected one of a, b'],
    [z.union([z.string(), z.number()]), undefined, 'is missing'],
    [z.string(), 1, 'must be a text, not a whole number'],
    [z.number(), 'x', 'must be a number, not "x"'],
    [z.int(), 1.5, 'must be a whole number, not the number 1.5'],
    [z.boolean(), null, 'must be true or false, not null'],
    [z.object({}), [], 'must be an object, not a list'],
    [z.array(z.string()), { a: 1 }, 'must be a list, not an object'],
    [z.null(), true, 'must be null, not true'],
    [z.date(), 'x', 'must be date, not "x"'],
    [z.string().min(1), '', 'must have at least 1 character'],
    [z.string().max(2), 'abc', 'must have at most 2 characters'],
    [z.array(z.string()).min(2), [], 'must have at least 2 entries'],
    [z.array(z.string()).max(1), ['a', 'b'], 'must have at most 1 entry'],
    [z.number().min(3), 2, 'must be at least 3'],
    [z.number().max(3), 4, 'must be at most 3'],
    [z.number().positive(), 0, 'must be more than 0'],
    [z.number().lt(3), 3, 'must be less than 3'],
    [z.number().multipleOf(5), 3, 'must be a multiple of 5'],
    [z.enum(['a', 'b']), 'c', 'must be one of a, b, not "c"'],
    [z.literal(true), false, 'must be true'],
    [z.literal('yes'), 'no', 'must be "yes", not "no"'],
    [z.literal(1), NaN, 'must be 1, not NaN'],
    [z.function(), 1.5, 'must be a function, not the number 1.5'],
    [z.url(), 'x', 'must be a complete URL, such as https://example.org/song.mp3, not "x"'],
    [z.iso.datetime(), 'x', 'must be a time in ISO 8601, such as 2025-01-31T12:00:00Z, not "x"'],
    [z.uuid(), 'x', 'must be a UUID, not "x"'],
    [z.email(), 'x', 'must be an e-mail address, not "x"'],
    [z.string().regex(/^a$/), 'b', 'must have the form that is described, not "b"'],
    [
      z.record(z.string().max(1), z.string()),
      { ab: '' },
      'has a name that is not allowed: it must have at most 1 character',
    ],
    [
      z.map(z.string(), z.string()),
      new Map([[{}, '']]),
      'has a name that is not allowed: it must be a text, not an object',
    ],
    [
      z.union([z.string(), z.number()]),
      true,
      'has none of the allowed forms: must be a text, not true, or must be a number, not true',
    ],
    [
      z.union([z.literal(false), z.object({ requests: z.number() })]),
      { requests: 'many' },
      'has none of the allowed forms: must be false, or requests must be a number, not "many"',
    ],
    [
      z.discriminatedUnion('kind', [z.object({ kind: z.literal('a') }), z.object({ kind: z.literal('b') })]),
      { kind: 'c' },
      'must be one of a, b',
    ],
    [z.string().refine(() => false), 'x', 'is not valid'],
    [z.string().refine(() => false, 'must rhyme'), 'x', 'must rhyme'],
    [z.string().min(3, 'is too short for a song'), 'x', 'is too short for a song'],
  ])('is described in our own words: case %#', (schema, value, words) => {
    const checked = checkInput(schema, value)
    expect(checked.success ? [] : checked.issues.map(({ message }) => message)).toEqual([words])
  })

  test('gives for an unknown name the one that was probably meant, or the known ones', () => {
    const schema = z.strictObject({ webhook: z.string().optional(), batchName: z.string().optional() })
    const messages = (given: object) => {
      const checked = checkInput(schema, given)
      return checked.success ? [] : checked.issues.map(({ path, message }) => `${path.join('.')} ${message}`)
    }
    expect(messages({ webhookUrl: 1 })).toEqual(['webhookUrl is not known: the nearest name is webhook'])
    expect(messages({ batch_name: 1 })).toEqual(['batch_name is not known: the nearest name is batchName'])
    expect(messages({ colour: 1 })).toEqual(['colour is not known: expected only webhook, batchName'])
    expect(messages({ q: 1, w: 1, e: 1, r: 1 })).toHaveLength(4)
    const nested = checkInput(z.object({ inner: z.strictObject({}) }), { inner: { a: 1 } })
    expect(nested).toMatchObject({ issues: [{ path: ['inner', 'a'], message: 'is not known: leave it out' }] })
  })

  test('suggests the nearest name by letters, or one with the same beginning', () => {
    const names = ['webhook', 'metadata', 'name']
    expect(['webhookUrl', 'meta', 'nmae', 'w', 'x', 'entirely'].map((word) => nearest(word, names))).toEqual([
      'webhook',
      'metadata',
      'name',
      'webhook',
      undefined,
      undefined,
    ])
  })
  test('is not compared letter by letter if the word is far longer than any name', () => {
    const letters = () => {
      throw new Error('its letters were read')
    }
    const word = (text: string) => Object.assign(new String(text), { [Symbol.iterator]: letters }) as unknown as string
    expect(() => nearest(word('metdaata'), ['metadata'])).toThrow('were read')
    expect(nearest(word('metdaata'.repeat(10_000)), ['metadata', 'name'])).toBe(undefined)
  })
})
