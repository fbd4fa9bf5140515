import { expect, test } from 'vitest'
import { modelWords } from '../../src/core/models/model-words.js'

test('a model is chosen by its quality and speed; an unknown one, by its name', () => {
  expect(modelWords('embedded')).toBe('Basic quality, fastest (embedded)')
  expect(modelWords('kim-vocal-2')).toMatch(/^Very good quality, takes up to three times as long as the song \(/)
  expect(modelWords('house/blend.json')).toBe('blend')
})
