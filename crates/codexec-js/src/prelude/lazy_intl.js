// Intl and the locale-aware methods. Their code is evaluated when it is first used.
(native, own) => {
  const { Array, BigInt, Date, Number, RangeError, String, Uint8Array } = globalThis;
  const { defineProperty } = Reflect;
  const { load, ...natives } = native.intl;
  let made;
  const intl = () => (made ??= load()(natives, { define: own.define }));

  defineProperty(globalThis, "Intl", {
    __proto__: null,
    get: () => intl().Intl,
    set: (value) => own.define(globalThis, "Intl", value),
    configurable: true,
    enumerable: false,
  });
  const getTime = Date.prototype.getTime;
  const numberValue = Number.prototype.valueOf;
  const bigintValue = BigInt.prototype.valueOf;
  const methods = (prototype, made) => {
    const names = own.ownKeys(made);
    for (let i = 0; i < names.length; i++) own.define(prototype, names[i], made[names[i]]);
  };
  methods(Date.prototype, {
    toLocaleString(locales, options) {
      return intl().dateToLocaleString(own.apply(getTime, this, []), locales, options);
    },
    toLocaleDateString(locales, options) {
      return intl().dateToLocaleDateString(own.apply(getTime, this, []), locales, options);
    },
    toLocaleTimeString(locales, options) {
      return intl().dateToLocaleTimeString(own.apply(getTime, this, []), locales, options);
    },
  });
  methods(Number.prototype, {
    toLocaleString(locales, options) {
      return intl().numberToLocaleString(own.apply(numberValue, this, []), locales, options);
    },
  });
  methods(BigInt.prototype, {
    toLocaleString(locales, options) {
      return intl().numberToLocaleString(own.apply(bigintValue, this, []), locales, options);
    },
  });
  const listMethods = {
    toLocaleString(locales, options) {
      let text = "";
      for (let i = 0; i < this.length; i++) {
        const item = this[i];
        if (i > 0) text += ",";
        if (item !== undefined && item !== null) text += item.toLocaleString(locales, options);
      }
      return text;
    },
  };
  methods(Array.prototype, listMethods);
  methods(own.getPrototypeOf(Uint8Array.prototype), listMethods);
  const { toUpperCase, toLowerCase } = String.prototype;
  const checkCase = (locales) => {
    if (locales === undefined) return;
    const tag = own.isArray(locales) ? locales[0] : locales;
    const language = own.slice(String(tag), 0, 2);
    if (language === "tr" || language === "az" || language === "lt") {
      throw new RangeError("the locale " + String(tag) + " is not supported here");
    }
  };
  methods(String.prototype, {
    toLocaleUpperCase(locales) {
      checkCase(locales);
      return own.apply(toUpperCase, this, []);
    },
    toLocaleLowerCase(locales) {
      checkCase(locales);
      return own.apply(toLowerCase, this, []);
    },
    localeCompare(that, locales, options) {
      return intl().localeCompare(String(this), String(that), locales, options);
    },
  });
}
