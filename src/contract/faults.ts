/** One call of a port's method, as a fault plan sees it. */
export interface PortCall {
  method: string
  args: readonly unknown[]
  /** Number of this call of the method, counted from 1. */
  occurrence: number
  /** `before`: the port has done nothing yet. `after`: the effect has happened and the caller does not learn of it. */
  moment: 'before' | 'after'
}

/** Returns the call's error; `undefined` lets the call pass. A promise delays the call until it is settled. */
export type FaultPlan = (call: PortCall) => Error | undefined | Promise<Error | undefined>

/**
 * Returns the port with faults: every method consults the plan before and after its effect. Faults after the effect are
 * the harmful ones: the write is there, and its caller does not know. Methods return promises; async generator methods
 * fail before their first and after their last item.
 *
 * @example
 * const jobs = withFaults(memoryJobs(), faultOnce('apply', 'after'))
 */
export function withFaults<Port extends object>(port: Port, plan: FaultPlan): Port {
  const occurrences = new Map<string, number>()
  return new Proxy(port, {
    get(target, property) {
      const value: unknown = Reflect.get(target, property, target)
      if (typeof value !== 'function' || typeof property !== 'string') return value
      return (...args: unknown[]) => {
        const occurrence = (occurrences.get(property) ?? 0) + 1
        occurrences.set(property, occurrence)
        const ask = async (moment: PortCall['moment']) => {
          const fault = await plan({ method: property, args, occurrence, moment })
          if (fault) throw fault
        }
        const call = (): unknown => Reflect.apply(value, target, args)
        return isAsyncGenerator(value)
          ? faultyIteration(call as () => AsyncIterable<unknown>, ask)
          : faultyCall(call, ask)
      }
    },
  })
}

/** A plan that fails the given call of a method once and lets everything else pass. */
export function faultOnce(
  method: string,
  moment: PortCall['moment'],
  options: { occurrence?: number; error?: Error } = {},
): FaultPlan {
  const { occurrence = 1, error = new Error(`Injected fault ${moment} ${method}`) } = options
  return (call) =>
    call.method === method && call.moment === moment && call.occurrence === occurrence ? error : undefined
}

type Ask = (moment: PortCall['moment']) => Promise<void>

async function faultyCall(call: () => unknown, ask: Ask): Promise<unknown> {
  await ask('before')
  const result = await call()
  await ask('after')
  return result
}

async function* faultyIteration(call: () => AsyncIterable<unknown>, ask: Ask): AsyncGenerator<unknown, void, void> {
  await ask('before')
  yield* call()
  await ask('after')
}

function isAsyncGenerator(method: unknown): boolean {
  return Object.prototype.toString.call(method) === '[object AsyncGeneratorFunction]'
}
