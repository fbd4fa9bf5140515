import { expect, test } from 'vitest'
import { routeTable } from '../../../src/http/routing/route-table.js'
import { allRoutes } from '../../../src/http/routes.js'

const table = routeTable(allRoutes({ docs: true, console: true }))

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

test('a 405 for a path that exists names its methods', () => {
  expect(table.match('PUT', '/v1/job/1', '/v1'.length)).toEqual({
    kind: 'method',
    allow: ['GET', 'HEAD', 'DELETE', 'OPTIONS'],
  })
})

test('a fixed path that a param could stand for names its own methods', () => {
  for (const path of ['/job/cancel', '/job/delete', '/job/retry'])
    for (const method of ['OPTIONS', 'GET', 'HEAD', 'DELETE'])
      expect(table.match(method, path, 0), method).toEqual({ kind: 'method', allow: ['POST', 'OPTIONS'] })
  for (const method of ['OPTIONS', 'DELETE'])
    expect(table.match(method, '/job/events', 0), method).toEqual({ kind: 'method', allow: ['GET', 'HEAD', 'OPTIONS'] })
})

test('a path that was requested before is found again, whatever was requested since', () => {
  const operation = (method: string, path: string) => {
    const match = table.match(method, path, 0)
    return match.kind === 'route' && [match.route.operation, match.params]
  }
  const status = (id: string) => operation('GET', `/job/${id}/status`)
  expect(status('a')).toEqual(['getJobStatus', { id: 'a' }])
  expect(operation('DELETE', '/job/a')).toEqual(['deleteJob', { id: 'a' }])
  expect(operation('GET', '/job/a')).toEqual(['getJob', { id: 'a' }])
  for (let id = 0; id < 2500; id++) expect(status(String(id))).toEqual(['getJobStatus', { id: String(id) }])
  expect(status('a')).toEqual(['getJobStatus', { id: 'a' }])
  expect(status('x'.repeat(5000))).toEqual(['getJobStatus', { id: 'x'.repeat(5000) }])
})
