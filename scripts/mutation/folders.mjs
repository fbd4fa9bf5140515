// What is mutated, and the tests that have to notice, nearest first: those of the behaviour that need no servers.
const rules = ['test/unit', 'test/contract/memory.test.ts']

export const folders = [
  { folder: 'src/core/engine/job', tests: [...rules, 'test/engine/retry.test.ts'] },
  {
    folder: 'src/core/engine/dispatch',
    tests: [
      'test/unit/dispatch',
      'test/engine/heartbeat.test.ts',
      'test/engine/attempt-failure.test.ts',
      'test/engine/policy.test.ts',
      'test/engine/steps-checkpoint.test.ts',
      'test/engine/checkpoint.test.ts',
      'test/engine/recovery.test.ts',
      'test/engine/file-sweep.test.ts',
      'test/engine',
    ],
  },
  { folder: 'src/core/engine/batch', tests: ['test/unit', 'test/engine/batch.test.ts'] },
  { folder: 'src/adapters/stores/shared', tests: rules },
  { folder: 'src/http/auth', tests: ['test/unit', 'test/http/keys.test.ts'] },
  { folder: 'src/core/media/dsp', tests: ['test/unit/dsp'] },
]
