type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false

/** Makes `expectType<Expected>()(value)` compile only if the value has exactly that type, and not `any`. */
export function expectType<Expected>() {
  return <Actual>(value: Actual, ...same: Same<Actual, Expected> extends true ? [] : [never]): void =>
    void [value, same]
}

/** Compiles only if the function says that it needs no `this`, so that linters let hosts take it out of its object. */
export function expectFree<Taken>(
  taken: Taken,
  ...free: Same<ThisParameterType<Taken>, void> extends true ? [] : [never]
): void {
  void [taken, free]
}
