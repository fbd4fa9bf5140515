export type Subscription = ReturnType<typeof subscription>

/** Calls a listener, never twice at once: however often it is woken during a call, one more call follows. */
export function subscription(listener: () => Promise<void>, address: string | undefined) {
  let isPending = false
  let isStopped = false
  let running: Promise<void> | undefined
  const callIfDue = () => {
    if (isStopped || running || !isPending) return
    isPending = false
    running = Promise.resolve()
      .then(listener)
      .catch(() => {})
      .finally(() => {
        running = undefined
        callIfDue()
      })
  }
  return {
    /** @param addresses empty: all are meant */
    isMeant: (addresses: ReadonlySet<string>) =>
      addresses.size === 0 || address === undefined || addresses.has(address),
    wake() {
      isPending = true
      callIfDue()
    },
    /** Resolves when the running call has returned. */
    async stop() {
      isStopped = true
      await running
    },
  }
}
