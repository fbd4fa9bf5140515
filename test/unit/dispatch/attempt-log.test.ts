import { expect, test } from 'vitest'
import { sampleJob } from '../../../src/contract/job-samples.js'
import { attemptLog } from '../../../src/core/engine/dispatch/attempt/attempt-log.js'
import { recordingLogger } from '../../engine/harness.js'

test('lines about an attempt name the step that failed, until another try of that step has ended well', () => {
  const { logger, lines } = recordingLogger()
  const job = sampleJob({ token: 3 })
  const log = attemptLog(logger, job)
  const about = { jobId: job.id, token: 3 }
  const stepOf = (): unknown => {
    log.warn('a line', new Error('why'))
    return lines.at(-1)?.fields
  }
  const err = new Error('why')
  expect(stepOf()).toEqual({ ...about, err })
  log.noteStep({ name: 'mix', state: 'failed' })
  expect(stepOf()).toEqual({ ...about, step: 'mix', err })
  log.noteStep({ name: 'other', state: 'done' })
  expect(stepOf()).toEqual({ ...about, step: 'mix', err })
  log.noteStep({ name: 'mix', state: 'done' })
  expect(stepOf()).toEqual({ ...about, err })
})
