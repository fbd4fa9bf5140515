import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const folder = fileURLToPath(new URL('../../.changeset', import.meta.url))
const changesets = readdirSync(folder).filter((name) => name.endsWith('.md') && name !== 'README.md')

/** The form of a changeset; an empty one raises no version and has no text. */
const form = /^---\n(?:(['"])stemwork\1: (?:patch|minor|major)\n---\n\n\S[^]*|---\n*)$/

test('each changeset states the version bump and what changes, so that the release can collect them', () => {
  const broken = changesets.filter((name) => !form.test(readFileSync(join(folder, name), 'utf8')))
  expect(broken).toEqual([])
})

test('a changeset without text, or for another package, is noticed', () => {
  expect("---\n'stemwork': minor\n---\n\nAIFF can be written.\n").toMatch(form)
  expect('---\n---\n').toMatch(form)
  expect("---\n'stemwork': minor\n---\n").not.toMatch(form)
  expect("---\n'other': minor\n---\n\nAIFF can be written.\n").not.toMatch(form)
})
