export declare const unit: string[]
export declare const rules: string[]
export declare const daily: string[]
export declare const longest: string[]
