import { expect, test } from 'vitest'
import { folded, searchText, searchWords } from '../../src/core/engine/job/search-text.js'

test.each([
  ['Łódź', 'lodz'],
  ['Ørsted Straße Æon Œuvre', 'orsted strasse aeon oeuvre'],
  ['ΟΔΥΣΣΕΥΣ Ёлка İstanbul', 'οδυσσευσ елка istanbul'],
  ['ﬁn① Ｆｕｌｌ', 'fin1 full'],
  ['“Don’t” «stop» `now´', "'don't' 'stop' 'now'"],
  ['a—b – c', 'a-b - c'],
  [' two\u00a0\t\n spaces \u0000\ud800', 'two spaces'],
  ['zero\u200bwidth', 'zerowidth'],
])('%s is compared as %s', (text, expected) => {
  expect(folded(text)).toBe(expected)
  expect(folded(expected)).toBe(expected)
})

test('a job is searched by its name and batch, and a search has each word once', () => {
  expect(searchText({ name: null, batchName: null })).toBe('')
  expect(searchText({ name: 'Été', batchName: 'Night  Run' })).toBe('ete night run')
  expect(searchWords(' Run été RUN ')).toEqual(['run', 'ete'])
  expect(searchWords('\u0301')).toEqual([])
})
