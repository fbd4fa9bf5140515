type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false

/** `expectType<Expected>()(value)` compiles only when the value is of exactly that type; `any` is not. */
export function expectType<Expected>() {
  return <Actual>(value: Actual, ...same: Same<Actual, Expected> extends true ? [] : [never]): void =>
    void [value, same]
}
