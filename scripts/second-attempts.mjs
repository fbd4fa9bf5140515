// A vitest reporter that names the tests that failed and passed when repeated (`--retry`), with their first failure, so
// that a repeat never hides it.
export default class SecondAttempts {
  #tests = []

  onTestCaseResult(test) {
    if (!test.diagnostic()?.flaky) return
    const errors = (test.result().errors ?? []).map(
      ({ message, stacks }) => `    ${message.replace(/\s+/g, ' ')}${stacks?.[0] ? ` (line ${stacks[0].line})` : ''}`,
    )
    this.#tests.push([`  ${test.module.relativeModuleId}: ${test.fullName}`, ...errors].join('\n'))
  }

  onTestRunEnd() {
    if (this.#tests.length > 0) console.log(`\nPassed at the second attempt only:\n${this.#tests.join('\n')}`)
  }
}
