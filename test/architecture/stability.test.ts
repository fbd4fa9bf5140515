import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** The modules that declare the exports of experimental subpaths, and other experimental exports. */
const experimental = [
  'src/live.ts',
  'src/browser/index.ts',
  'src/browser/live-node.ts',
  'src/browser/live-stream.ts',
  'src/adapters/stores/shared/indexed-job.ts',
  'src/adapters/stores/shared/job-index.ts',
  'src/adapters/stores/shared/document-map.ts',
  'src/adapters/stores/shared/sorted-list.ts',
]

const docComment = /(\/\*\*(?:(?!\*\/)[^])*\*\/\n)?/
const declaration = new RegExp(
  `${docComment.source}export (?:async )?(?:function\\*?|interface|class|type) (\\w+)`,
  'g',
)

test('experimental exports say so in editors, and the page of versions lists them', () => {
  const unmarked = experimental.flatMap((file) =>
    Array.from(readFileSync(join(root, file), 'utf8').matchAll(declaration), ([, comment = '', name = '']) =>
      comment.includes('@experimental') ? [] : [`${file}: ${name}`],
    ).flat(),
  )
  expect(unmarked).toEqual([])
  const page = readFileSync(join(root, 'docs/versioning.md'), 'utf8')
  const [, listed = ''] = /## What is experimental\n([^]*?)\n## /.exec(page) ?? []
  expect(listed.match(/`stemwork\/\w+`/g)).toEqual(['`stemwork/live`', '`stemwork/browser`', '`stemwork/adapter`'])
})
