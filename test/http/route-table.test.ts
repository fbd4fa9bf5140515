import { expect, test } from 'vitest'
import { RouteTable } from '../../src/http/routing/route-table.js'
import { allRoutes } from '../../src/http/routes.js'

const table = new RouteTable(allRoutes({ docs: true, console: true }))

test.each([
  ['GET', '/v1/job/1/status', 'getJobStatus', { id: '1' }],
  ['HEAD', '/v1/job/1/status/', 'getJobStatus', { id: '1' }],
  ['DELETE', '/v1/job/1', 'deleteJob', { id: '1' }],
  ['GET', '/v1/job/', 'listJobs', {}],
  ['GET', '/v1', 'getIndex', {}],
  ['GET', '/v1/', 'getIndex', {}],
  ['GET', '/v1/workflow', 'listWorkflows', {}],
  ['GET', '/v1/workflow/service/stems-4', 'getWorkflow', { id: 'service/stems-4' }],
  ['GET', '/v1/storage/a/b/c/d/e/f.wav', 'downloadFile', { file: 'a/b/c/d/e/f.wav' }],
])('%s %s is %s', (method, path, operation, params) => {
  const match = table.match(method, path, '/v1'.length)
  expect(match.kind === 'route' && { operation: match.route.operation, params: match.params }).toEqual({
    operation,
    params,
  })
})

test.each(['/jobs', '/job/1/status/x', '//job', '/storage', '/JOB'])('there is nothing at "%s"', (path) => {
  expect(table.match('GET', `/v1${path}`, '/v1'.length)).toEqual({ kind: 'none' })
})

test('a path that exists names its methods', () => {
  expect(table.match('PUT', '/v1/job/1', '/v1'.length)).toEqual({
    kind: 'method',
    allow: ['GET', 'HEAD', 'DELETE', 'OPTIONS'],
  })
})
