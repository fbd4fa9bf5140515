import { expect, test } from 'vitest'
import { createHandler } from '../../../src/http/index.js'
import { createTestEngine } from '../../../src/testing/index.js'
import { recordingLogger, textWorkflow } from '../../engine/harness.js'

function service(basePath: string) {
  const { logger, lines } = recordingLogger()
  const handler = createHandler(createTestEngine({ workflows: [textWorkflow()], logger }), { basePath })
  return { handler, warnings: () => lines.filter(({ level }) => level === 'warn') }
}
const ask = (path: string) => new Request(`http://localhost${path}`)

test.each([
  ['the base path is given twice', '/v1', '/v1', '/v1/upload', '/v1/v1'],
  ['the mount does not know its path', '', '', '/v1/job/1/status', ''],
  ['the base path is another', '/api', '', '/v1/upload', '/api'],
])('if %s, the answer says which paths exist, and the log tells the host once', async (...given) => {
  const [, basePath, mountPath, path, expected] = given
  const { handler, warnings } = service(basePath)
  const answer = await handler(ask(path), { mountPath })
  expect(answer.status).toBe(404)
  expect(((await answer.json()) as { message: string }).message).toContain(`begin with "${expected}/"`)
  await handler(ask(path), { mountPath })
  expect(warnings()).toEqual([{ level: 'warn', fields: { path, expected: `${expected}/...` } }])
})

test('a path that is not ours under any prefix is not logged', async () => {
  const { handler, warnings } = service('/v1')
  for (const path of ['/v1/nothing', '/favicon.ico', '/wp-admin/setup.php', '/v1/']) await handler(ask(path))
  expect(warnings()).toEqual([])
})

test('a path with a hundred segments is not checked from each of them', async () => {
  const { handler, warnings } = service('/v1')
  await handler(ask(`${'/a'.repeat(100)}/upload`))
  expect(warnings()).toEqual([])
  await handler(ask(`${'/a'.repeat(90)}/upload`))
  expect(warnings()).toHaveLength(1)
})
