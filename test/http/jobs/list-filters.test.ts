import { expect, expectTypeOf, test } from 'vitest'
import { type JobFilter, type JobFilters, listQuery } from '../../../src/client/job-filters.js'
import { type ByFilter, eachFilter, matcherOf } from '../../../src/core/engine/ports/job-query.js'
import { WorkflowRegistry } from '../../../src/core/engine/workflow/registry.js'
import { bodyFilters, type FilterName, jobQueryOf, queryFilters } from '../../../src/http/jobs/filter-params.js'
import { sampleJob } from '../../../src/contract/job-samples.js'

test('the client has every filter of the service, and no other', () => {
  expectTypeOf<Exclude<keyof JobFilters, 'size' | 'cursor'>>().toEqualTypeOf<FilterName>()
  expectTypeOf<Exclude<keyof JobFilter, 'all' | 'limit' | 'after'>>().toEqualTypeOf<FilterName>()
})

test('the client writes what the service reads', () => {
  const filters: Required<Omit<JobFilters, 'size' | 'cursor'>> = {
    status: ['QUEUED', 'FAILED'],
    workflow: 'service/a',
    batchName: 'night',
    createdAfter: new Date(1),
    createdBefore: new Date(2),
    completedAfter: new Date(3),
    completedBefore: new Date(4),
    search: 'lodz',
  }
  const sent = listQuery(filters)
  const read = Object.keys(queryFilters).map((name) => {
    const values = sent.getAll(name)
    return [name, queryFilters[name as FilterName].parse(values.length > 1 ? values : values[0])]
  })
  expect(jobQueryOf(Object.fromEntries(read), new WorkflowRegistry([]))).toEqual({
    statuses: ['QUEUED', 'FAILED'],
    workflows: ['service/a'],
    batchName: 'night',
    createdAfter: 1,
    createdBefore: 2,
    completedAfter: 3,
    completedBefore: 4,
    search: 'lodz',
  })
})

test('lists repeat in a query, and are arrays in a body', () => {
  expect(queryFilters.workflow.parse('a')).toEqual(['a'])
  expect(bodyFilters.workflow.safeParse('a').success).toBe(false)
  expect(bodyFilters.workflow.parse(['a', 'b'])).toEqual(['a', 'b'])
})

test('a store whose conditions lack a filter does not compile', () => {
  const { app, ...others } = {
    app: () => 'app',
    statuses: () => 'statuses',
    workflows: () => 'workflows',
    batchName: () => 'batchName',
    createdAfter: () => 'createdAfter',
    createdBefore: () => 'createdBefore',
    completedAfter: () => 'completedAfter',
    completedBefore: () => 'completedBefore',
    uploadKey: () => 'uploadKey',
    search: () => 'search',
  } satisfies ByFilter<string>
  expect(eachFilter({ app: 'a', createdAfter: 0 }, { app, ...others })).toEqual(['app', 'createdAfter'])
  // @ts-expect-error: it would list the jobs of every application
  expect(eachFilter({ app: 'a', createdAfter: 0 }, others)).toEqual(['createdAfter'])
})

test('a job matches only if it matches all filters of a query, even those that match nothing', () => {
  const job = sampleJob({ batchName: '' })
  expect(matcherOf({})(job)).toBe(true)
  expect(matcherOf({ batchName: '' })(job)).toBe(true)
  expect(matcherOf({ statuses: [] })(job)).toBe(false)
  expect(matcherOf({ completedBefore: Infinity })(job)).toBe(false)
  expect(matcherOf({ app: job.app, completedAfter: -Infinity })(job)).toBe(false)
})
