/**
 * A workflow as a client's types know it: its id, the params of its jobs, and its results as download links by output
 * name.
 */
export interface Offer<Id extends string = string, Params = Record<string, unknown>, Result = Record<string, string>> {
  id: Id
  params: Params
  result: Result
}

/** Any workflow, whatever its params and results. */
export type AnyOffer = Offer<string, unknown, unknown>

/** The workflows of an engine's type, or of several engines; without a type, any workflow. */
export type OffersOf<Engine> = Engine extends { workflows: { list(): (infer Workflow)[] } } ? OfferOf<Workflow> : Offer

type OfferOf<Workflow> = Workflow extends { id: infer Id extends string; types?: infer Types }
  ? NonNullable<Types> extends { params: infer Params; result: infer Result }
    ? unknown extends Params
      ? Offer<Id>
      : Offer<Id, { [Name in keyof Params]: Params[Name] }, Result>
    : Offer<Id>
  : never

/** The workflow with this id. */
export type OfferBy<Offered extends AnyOffer, Id extends string> = Offered extends AnyOffer
  ? string extends Offered['id']
    ? Offered
    : [Id & Offered['id']] extends [never]
      ? never
      : Offered
  : never

declare const workflow: unique symbol

/** The id of a job, with its workflow in the type. */
export type JobId<Workflow extends string> = string & { readonly [workflow]?: Workflow }
