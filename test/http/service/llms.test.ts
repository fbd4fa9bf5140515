import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createHandler } from '../../../src/http/index.js'
import { root } from '../../examples/snippets.js'
import { createTestEngine } from '../../../src/testing/index.js'
import { textWorkflow } from '../../engine/harness.js'

const handler = createHandler(createTestEngine({ workflows: [textWorkflow()] }), { basePath: '/v1' })

async function served(path: string): Promise<string> {
  const answer = await handler(new Request(`http://localhost${path}`))
  expect(answer.status).toBe(200)
  expect(answer.headers.get('content-type')).toBe('text/plain; charset=utf-8')
  return answer.text()
}

test('the list for language models is served, even at the root, with working links', async () => {
  const text = await served('/v1/llms.txt')
  expect(await served('/llms.txt')).toBe(text)
  expect(text).toMatch(/^# stemwork\n/)
  const targets = Array.from(text.matchAll(/\]\(([^)]+)\)/g), ([, target]) => target)
  expect(targets).toContain('https://github.com/stemwork/stemwork/blob/main/docs/embedding.md')
  expect(targets.filter((target) => !/^https:\/\/github\.com\/\S+$/.test(target ?? ''))).toEqual([])
})

test('the full text has whole programs, which are those of the examples, and pages', async () => {
  const text = await served('/llms-full.txt')
  // test/examples/examples.test.ts and test/examples/distributed.test.ts run these programs.
  for (const name of ['express', 'next-route', 'worker', 'custom-workflow']) {
    const path = `examples/${name}.mjs`
    expect(text).toContain(`## ${path}\n\n\`\`\`js\n${readFileSync(join(root, path), 'utf8')}\`\`\`\n`)
  }
  for (const title of ['Getting started', 'Embedding', 'HTTP reference', 'Deployment'])
    expect(text).toMatch(new RegExp(`^# ${title}`, 'm'))
  expect(text.length).toBeLessThan(100_000)
  expect(text).not.toMatch(/\]\((?!https?:|#)/)
})

test('a service without documentation has neither', async () => {
  const bare = createHandler(createTestEngine({ workflows: [textWorkflow()] }), { docs: false, basePath: '/v1' })
  for (const path of ['/v1/llms.txt', '/v1/llms-full.txt'])
    expect((await bare(new Request(`http://localhost${path}`))).status).toBe(404)
})
