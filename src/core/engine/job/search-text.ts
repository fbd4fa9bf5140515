import type { JobRecord } from './job.js'

/** Letters that Unicode does not decompose. */
const letters: Readonly<Record<string, string>> = {
  ł: 'l',
  ø: 'o',
  đ: 'd',
  ð: 'd',
  ħ: 'h',
  ŧ: 't',
  ı: 'i',
  ß: 'ss',
  æ: 'ae',
  œ: 'oe',
  þ: 'th',
  ς: 'σ',
}
const letterForm = new RegExp(`[${Object.keys(letters).join('')}]`, 'g')

/** Normalizes text for searches: "lodz" for "Łódź". Stores keep the result, so a change here needs a migration. */
export function folded(text: string): string {
  return text
    .replaceAll(/[\p{Pi}\p{Pf}"`´‚„ʼʹ′″＇＂]/gu, "'")
    .normalize('NFKD')
    .toLowerCase()
    .replaceAll(/[\p{M}\p{Cf}]/gu, '')
    .replaceAll(letterForm, (letter) => letters[letter] ?? letter)
    .replaceAll(/[\p{Pd}−]/gu, '-')
    .replaceAll(/[\s\p{Cc}\p{Cs}]+/gu, ' ')
    .trim()
}

/** The text of a job that a search scans; never changes. */
export function searchText({ name, batchName }: Pick<JobRecord, 'name' | 'batchName'>): string {
  return folded(`${name ?? ''} ${batchName ?? ''}`)
}

/** The words of a search. A job matches if its text contains each of them, or its id is one of them. */
export function searchWords(search: string): string[] {
  return [...new Set(folded(search).split(' '))].filter((word) => word !== '')
}
